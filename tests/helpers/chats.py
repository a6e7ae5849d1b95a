"""Chat templates in the manner of today's families, worded for these tests, templates that do harm, a chat model."""

from functools import cache
from typing import Any

import tokenizers

from tests.helpers.engine import TODAY, made
from transformer_core.bundle import Bundle
from transformer_core.models import Gpt
from transformer_core.text import Tokenizer
from transformer_core.text.chat import ChatTemplate
from transformer_core.training.corpora import passage

LLAMA = """\
{%- set rest = messages -%}
{{- bos_token -}}
{%- if messages[0]['role'] == 'system' -%}
  {%- set first = messages[0].content | trim -%}
  {%- set rest = messages[1:] -%}
{%- else -%}
  {%- set first = '' -%}
{%- endif -%}
{{- "<|start|>system<|end|>\\n\\nIt is " ~ ("20" ~ "26") ~ ".\\n" ~ first ~ "<|eot|>" -}}
{%- for message in rest -%}
  {{- '<|start|>' + message['role'] + '<|end|>\\n\\n' + message['content'] | trim + '<|eot|>' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|start|>assistant<|end|>\\n\\n' -}}{%- endif -%}
"""
QWEN = """\
{% if not messages or messages[0].role != 'system' %}
{{- '<|im_start|>system\\nYou help.<|im_end|>\\n' }}
{% endif %}
{% for message in messages %}
    {% if message.role in ('user', 'system') or (message.role == 'assistant' and not message.tool_calls) %}
{{- '<|im_start|>' ~ message.role ~ '\\n' ~ message.content ~ '<|im_end|>' ~ '\\n' }}
    {% endif %}
{% endfor %}
{% if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{% endif %}
"""
GEMMA = """\
{{ bos_token }}
{%- set spoken = namespace(before='', begun=false) -%}
{%- for message in messages -%}
  {%- if message['role'] == 'system' -%}
    {%- if spoken.begun -%}{{ raise_exception('System comes first') }}{%- endif -%}
    {%- set spoken.before = message['content'] ~ '\\n\\n' -%}
  {%- else -%}
    {%- set spoken.begun = true -%}
    {{ '<turn>' + ('model' if message['role'] == 'assistant' else message['role']) + '\\n' + spoken.before }}
    {{- message['content'] | trim + '</turn>\\n' }}
    {%- set spoken.before = '' -%}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt %}{{ '<turn>model\\n' }}{% endif -%}
"""
MISTRAL = """\
{%- if messages[0].role == "system" %}{% set told = messages[0].content %}{% set turns = messages[1:] %}
{%- else %}{% set told = "" %}{% set turns = messages %}{% endif -%}
{{- bos_token }}
{%- for turn in turns %}
  {%- if (turn.role == "user") != (loop.index0 % 2 == 0) %}{{ raise_exception("Roles must alternate") }}{% endif %}
  {%- if turn.role == "user" %}
    {%- if told and loop.last %}{{- "[INST]" + told + "\\n\\n" + turn.content + "[/INST]" }}
    {%- else %}{{- "[INST]" + turn.content + "[/INST]" }}{% endif %}
  {%- else %}{{- " " + turn.content + eos_token }}{% endif %}
{%- endfor %}
"""
CHATML = """\
{% for message in messages %}
{{ '<|im_start|>' + message.role }}
{% generation %}
{{ message.content }}{{ {'kind': 'é<'} | tojson if false }}<|im_end|>
{% endgeneration %}
{% if loop.index > 20 %}{% break %}{% endif %}
{% endfor %}
{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}
"""
TEMPLATES = {"llama": LLAMA, "qwen": QWEN, "gemma": GEMMA, "mistral": MISTRAL, "chatml": CHATML}
MARKERS = ("<|start|>", "<|end|>", "<|eot|>", "<|im_start|>", "<|im_end|>", "<turn>", "</turn>", "[INST]", "[/INST]")
HARMFUL = {
    "{% for i in range(10**9) %}{% endfor %}": "Range too big",
    "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}": "did not end within 1 s",
    "{{ 'a' * 10**9 }}": "more than 256 MB",
    "{% set x = 9 ** 9 %}{{ (x ** 9) ** (x ** 2) }}": "did not end within 1 s",
    "{% macro again() %}{{ again() }}{% endmacro %}{{ again() }}": "calls itself without an end",
    "{{ " + "(" * 5_000 + "1" + ")" * 5_000 + " }}": "nested too deeply",
    "{{ ''.__class__.__mro__ }}": "reaches for what a template may not have",
    "{{ cycler.__init__.__globals__.os.system('true') }}": "reaches for what a template may not have",
    "{{ '{0.__class__.__base__}'.format(messages) }}": "reaches for what a template may not have",
    "{{ messages.append(1) }}": "reaches for what a template may not have",
    "{% set names = namespace(__html__=1) %}": "reaches for what a template may not have",
    "{% set names = namespace() %}{% set names.__html__ = 1 %}": "reaches for what a template may not have",
    "{% include '/etc/passwd' %}": "no loader",
    "{% for i in range(90000) %}again{% endfor %}": "more than 32,768 characters",
    "{{": "line 1",
    "{{ raise_exception('No such role') }}": "refuses this conversation: No such role",
}


@cache
def chat_tokenizer() -> Tokenizer:
    """Return a BPE that puts <s> before every text and knows the markers of all templates as special tokens."""
    texts = (passage("en") + passage("zh")).splitlines()
    whole = tokenizers.Tokenizer.from_str(Tokenizer.train("bpe", texts, vocab_size=1_200, template="none").to_json())
    whole.add_special_tokens(["<s>", "</s>", *MARKERS])
    begin = whole.token_to_id("<s>")
    whole.post_processor = tokenizers.processors.TemplateProcessing("<s> $A", "<s> $A $B", [("<s>", begin)])
    return Tokenizer(whole, {"[BOS]": "<s>", "[EOS]": "</s>"})


def chat_model(template: str, **changes: Any) -> Bundle:
    """Return a GPT that nobody trained, with a chat template in Jinja."""
    tokenizer = chat_tokenizer()
    options = {"max_len": 128, "d_model": 32, **(changes or TODAY["llama"])}
    model = made(Gpt, vocab_size=tokenizer.vocab_size, **options)
    return Bundle("speaker", model.requires_grad_(False), tokenizer, chat=ChatTemplate.of(template, tokenizer.named))
