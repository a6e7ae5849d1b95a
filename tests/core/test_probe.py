"""The probe records and edits what was asked, thread by thread; SITES says what every model records."""

import re
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Barrier

import pytest
import torch

from tests.helpers import nightly_but
from tests.helpers.engine import CROSSING, MODELS, TODAY, close, exactly, inputs, made, padded_ids
from transformer_core.models import Bert, Classifier, Decoder, Gpt, Translation
from transformer_core.probe import SILENT, Probe, TraceTooLarge, capture
from transformer_core.sites import RECURRENT_SITES, SITES, site_of
from transformer_core.trace import Trace

IDS = padded_ids(3, 5)


def zero_first_head(tensor: torch.Tensor) -> torch.Tensor:
    tensor[:, 0] = 0.0
    return tensor


def test_patterns_choose_what_is_recorded():
    model, given = made(Translation), inputs(Translation)
    for sites, expected in (
        (("*.weights",), 6),
        (("encoder.*.weights",), 2),
        (("decoder.layer[0].*_attention.weights", "logits"), 3),
        (("memory",), 1),
    ):
        assert len(capture(model, *given, sites=sites)[1]) == expected


def test_scopes_nest_by_with_and_handed_down():
    probe, x = Probe(), torch.ones(2)
    probe.at("encoder").at("layer0").tap("scores", x)
    with probe.at("decoder"), probe.at("layer1"):
        probe.tap("scores", x)
        with probe.at("self_attention"):
            probe.tap("scores", x)
        probe.at("cross_attention").tap("scores", x)
    with probe.at("decoder") as decoder:
        decoder.at("layer2").tap("scores", x)
    probe.tap("scores", x)
    assert list(probe.trace) == [
        "encoder.layer0.scores",
        "decoder.layer1.scores",
        "decoder.layer1.self_attention.scores",
        "decoder.layer1.cross_attention.scores",
        "decoder.layer2.scores",
        "scores",
    ]


def test_a_scope_ends_when_an_error_leaves_it():
    probe = Probe()
    with pytest.raises(RuntimeError, match="inside"), probe.at("encoder"):
        raise RuntimeError("inside")
    probe.tap("scores", torch.ones(1))
    assert list(probe.trace) == ["scores"]


def test_an_edit_is_used_by_the_model_and_recorded():
    model = made(Gpt)
    plain, before = capture(model, IDS)
    edited, after = capture(model, IDS, edits={"decoder.layer0.self_attention.heads": zero_first_head})
    name = "decoder.layer0.self_attention.heads"
    assert before[name][:, 0].any()
    assert not after[name][:, 0].any()
    assert torch.equal(after[name][:, 1], before[name][:, 1])
    assert not torch.allclose(edited, plain, atol=1e-2)
    joined = after[name].transpose(1, 2).flatten(2)
    with torch.no_grad():
        output = model.decoder.stack.layers[0].self_attention.output_proj(joined)
    close(after["decoder.layer0.self_attention.output"], output)


@pytest.mark.parametrize("leaf", ["weights", "scores", "masked_scores", "query", "key", "mean", "output"])
@pytest.mark.parametrize("sites", [("*",), ("logits",)])
def test_an_edit_takes_effect_whether_or_not_it_is_recorded(leaf, sites):
    model = made(Gpt)
    plain, _ = capture(model, IDS)
    edited, _ = capture(model, IDS, sites=sites, edits={f"*.{leaf}": lambda tensor: tensor * 0.5 + 0.3})
    assert not torch.allclose(edited, plain, atol=1e-2)


def test_edited_weights_mix_the_values():
    model, name = made(Classifier), "encoder.layer1.self_attention.weights"
    _, trace = capture(model, IDS, edits={name: lambda weights: torch.eye(5).expand_as(weights)})
    close(trace["encoder.layer1.self_attention.heads"], trace["encoder.layer1.self_attention.value"])


def test_several_edits_of_one_site_follow_one_another():
    edits = {"*.scores": lambda scores: scores + 1, "encoder.layer0.*scores": lambda scores: scores * 2}
    probe = Probe(("*",), edits=edits)
    result = probe.at("encoder").at("layer0").at("self_attention").tap("scores", torch.ones(2))
    assert result.tolist() == [4.0, 4.0]


def test_an_edit_in_place_reaches_neither_model_nor_caller():
    model, ids = made(Gpt, positions="learned"), IDS.clone()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    for leaf in ("token_ids", "position_embedding", "token_embedding", "query", "logits"):
        capture(model, ids, edits={f"*{leaf}": lambda tensor: tensor.zero_()})
    assert torch.equal(ids, IDS)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


@pytest.mark.parametrize("positions", ["learned", "sinusoidal", "alibi"])
def test_a_reader_of_a_trace_reaches_neither_model_nor_caller(positions):
    model, ids = made(Gpt, positions=positions), IDS.clone()
    before, _ = capture(model, ids)
    _, trace = capture(model, ids)
    for tensor in trace.values():
        tensor.numpy()[...] = 0
    assert torch.equal(ids, IDS)
    assert torch.equal(capture(model, ids)[0], before)


def test_capture_leaves_the_model_as_it_was():
    for training in (True, False):
        model = made(Classifier).train(training)
        with torch.inference_mode():
            model(IDS)
        before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        attributes = {name: set(vars(module)) for name, module in model.named_modules()}
        output, _ = capture(model, IDS, edits={"*.heads": zero_first_head})
        assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
        assert attributes == {name: set(vars(module)) for name, module in model.named_modules()}
        assert all(module.training == training for module in model.modules())
        assert all(parameter.requires_grad and parameter.grad is None for parameter in model.parameters())
        assert not any(module._forward_hooks for module in model.modules())
        assert not output.requires_grad


def test_a_pass_ends_where_enough_is_recorded():
    model = made(Classifier)
    sites = ("encoder.layer0.self_attention.scores", "encoder.layer0.self_attention.weights")
    output, whole = capture(model, IDS, sites=sites)
    none, trace = capture(model, IDS, sites=sites, until="*.weights")
    assert output is not None
    assert none is None
    assert list(trace) == list(sites)
    for site in sites:
        assert torch.equal(trace[site], whole[site])
    with pytest.raises(ValueError, match=r"\*\.layer1\.residual"):  # the pass had ended before
        capture(model, IDS, sites=(*sites, "*.layer1.residual"), until=sites[-1])
    with pytest.raises(ValueError, match="until='class_logits' matches no recorded tensor of Classifier"):
        capture(model, IDS, sites=sites, until="class_logits")


def test_silent_records_nothing():
    made(Classifier)(IDS, probe=SILENT)
    assert len(SILENT.trace) == 0
    assert SILENT.at("encoder") is SILENT
    assert not SILENT.wants("weights")
    with SILENT.at("encoder") as scope:
        assert scope is SILENT


def test_gradients_flow_through_a_probe():
    model, probe = made(Classifier), Probe()
    model(IDS, probe=probe).sum().backward()
    assert model.class_proj.weight.grad.any()
    assert not any(tensor.requires_grad for tensor in probe.trace.values())


def test_a_second_pass_of_one_probe_replaces_the_first():
    probe = Probe(("*.weights",))
    for _ in range(3):
        made(Gpt)(IDS, probe=probe)
    assert probe._bytes[0] == probe.trace.nbytes


def test_a_bound_that_fits_exactly_is_kept():
    _, trace = capture(made(Gpt), IDS)
    assert capture(made(Gpt), IDS, max_bytes=trace.nbytes)[1].nbytes == trace.nbytes
    with pytest.raises(TraceTooLarge):
        capture(made(Gpt), IDS, max_bytes=trace.nbytes - 1)


ERRORS = {
    "sites match nothing": (
        {"sites": ("*.weights", "*.weight")},
        ValueError,
        "sites='*.weight' matches no tensor of Gpt's forward pass",
    ),
    "edits match nothing": (
        {"edits": {"*.layer9.*": torch.zeros_like}},
        ValueError,
        "edits='*.layer9.*' matches no tensor of Gpt's forward pass",
    ),
    "another shape": (
        {"edits": {"*.heads": lambda heads: heads[:, :1]}},
        ValueError,
        "edits['*.heads'] returned shape (3, 1, 5, 8) at decoder.layer0.self_attention.heads; "
        "it must keep (3, 2, 5, 8)",
    ),
    "one string": (
        {"sites": "*.weights"},
        ValueError,
        "sites='*.weights' must be a tuple of patterns, such as ('*.weights',)",
    ),
    "too large": (
        {"sites": ("*.weights",), "max_bytes": 700},
        TraceTooLarge,
        "sites=('*.weights',) keep more than max_bytes=700: decoder.layer1.self_attention.weights (3, 2, 5, 5) "
        "brings them to 1200; name fewer sites or layers, or give a shorter text",
    ),
}


@pytest.mark.parametrize(("options", "error", "message"), ERRORS.values(), ids=ERRORS)
def test_errors_name_the_values(options, error, message):
    with pytest.raises(error, match=exactly(message)):
        capture(made(Gpt), IDS, **options)


def test_a_trace_is_a_mapping():
    trace = Trace({"a.weights": torch.zeros(2, 3), "b.weights": torch.ones(2, 3), "b.scores": torch.ones(4)})
    assert len(trace) == 3
    assert list(trace) == ["a.weights", "b.weights", "b.scores"]
    assert "a.weights" in trace
    assert "weights" not in trace
    assert trace.nbytes == 4 * (6 + 6 + 4)
    assert list(trace.select("*.weights")) == ["a.weights", "b.weights"]
    assert trace.stack("*.weights").shape == (2, 2, 3)
    assert trace.site("a.weights").scale == "probability"


def test_errors_of_a_trace_name_the_values():
    trace = Trace({"a.weights": torch.zeros(2), "b.scores": torch.zeros(3)})
    with pytest.raises(KeyError, match=r"'a\.heads' was not recorded; recorded: a\.weights, b\.scores"):
        trace["a.heads"]
    with pytest.raises(KeyError, match=r"'a\.heads' was not recorded; recorded: nothing"):
        Trace()["a.heads"]
    nothing = "pattern='*.mean' matches nothing recorded; recorded: a.weights, b.scores"
    with pytest.raises(ValueError, match=exactly(nothing)):
        trace.stack("*.mean")
    several = "pattern='*' matches tensors of several shapes: a.weights (2,), b.scores (3,); name one site"
    with pytest.raises(ValueError, match=exactly(several)):
        trace.stack("*")


SOURCE, TARGET, BATCH = 6, 5, 3
CHANGES = {
    "plain": {},
    "post": {"norm_order": "post", "norm": "unbiased"},
    "bert": {"positions": "learned", "n_segments": 2, "embedding_norm": True, "tied_output": False},
    "rotary": {"positions": "rotary", "d_head": 6, "scale_embeddings": True},
    "alibi": {"positions": "alibi", "scoring": "additive"},
    "mean": {"pooling": "mean", "n_classes": 7, "share_query_key": True, "share_key_value": True},
    "pooled": {"pooler": "tanh", "pair_head": False, "activation": "silu"},
    "bare": {"projections": False, "positions": "none", "residual": False},
    "two_vocabularies": {"target_vocab_size": 17, "d_head": 10},
    **TODAY,
}
ALL = [(kind, name) for kind in MODELS for name in CHANGES if kind not in CROSSING or name != "neox"]


EMBEDDING_WIDE = re.compile(r"\b(embedding\.(?!projected)|mlm_head\.)")  # where a factorised embedding's width is met


@cache
def recorded(kind, variant: str) -> tuple[Trace, dict[str, int]]:
    """Capture everything; return it with the size that each axis of SITES has in this model."""
    model = made(kind, **CHANGES[variant])
    config = model.config
    sizes = {
        "batch": BATCH,
        "head": config.n_heads,
        "kv_head": config.kv_heads,
        "d_head": config.d_head,
        "d_model": config.d_model,
        "d_embedding": config.d_embedding,
    }
    sizes |= {
        "d_ff": config.d_ff,
        "expert": config.n_experts,
        "each_expert": config.n_experts,
        "one": 1,
        "bound": 2,
        "class": 2 if kind is Bert else config.n_classes,
    }
    sizes["vocab"] = config.target_vocab_size if kind is Translation else config.vocab_size
    ids = inputs(kind, batch=BATCH, source=SOURCE, target=TARGET)
    return capture(model, *ids)[1], sizes


def lengths(kind, name: str) -> dict[str, int]:
    """Return the sizes of the axes of positions at one site of one model."""
    reads_source = kind is Translation and (name.startswith("encoder.") or name == "memory")
    here = SOURCE if reads_source else TARGET
    keys = SOURCE if ".cross_attention." in name else here
    return {"pos": 1 if name.startswith("pooler_norm") else here, "query_pos": here, "key_pos": keys}


@pytest.mark.parametrize(("kind", "variant"), nightly_but(ALL, lambda case: case[0] is Gpt or case[1] not in TODAY))
def test_every_recorded_tensor_has_the_shape_and_the_scale_that_its_row_states(kind, variant):
    trace, sizes = recorded(kind, variant)
    assert trace
    for name, tensor in trace.items():
        row = site_of(name)
        assert trace.site(name) is row
        expected = sizes | lengths(kind, name)
        if EMBEDDING_WIDE.search(name):
            expected["d_model"] = sizes["d_embedding"]
        assert tuple(tensor.shape) == tuple(expected[axis] for axis in row.axes), name
        assert row.scale in ("probability", "signed", "count", "id")
        assert tensor.is_floating_point() == (row.scale != "id")
        if row.scale in ("probability", "id"):
            assert tensor.min() >= 0
        if row.scale == "probability":
            assert tensor.max() <= 1 + 1e-6


def test_every_row_is_recorded_somewhere():
    leaves = {name.rpartition(".")[2] for kind, variant in ALL for name in recorded(kind, variant)[0]}
    assert leaves == set(SITES) - {*RECURRENT_SITES, "one_hot"}  # those are met in models/test_recurrent.py


def test_cross_attention_reads_two_lengths():
    trace, _ = recorded(Decoder, "plain")
    assert trace["layer0.cross_attention.weights"].shape == (BATCH, 2, TARGET, SOURCE)
    assert trace["layer0.self_attention.weights"].shape == (BATCH, 2, TARGET, TARGET)


def test_every_row_is_filled_in():
    for leaf, row in SITES.items():
        assert all((row.axes, row.formula, row.source, row.meaning)), leaf
        assert "\n" not in row.meaning
        assert row.formula.count("{") == row.formula.count("}")


def test_an_unknown_leaf_is_named():
    with pytest.raises(KeyError, match=r"'encoder\.layer0\.smell' ends in 'smell', which is not in SITES: token_ids, "):
        site_of("encoder.layer0.smell")


def test_tensors_are_recorded_in_the_order_they_are_computed():
    trace, _ = recorded(Translation, "plain")
    names = list(trace)
    assert names[0] == "encoder.embedding.token_ids"
    assert names[-1] == "logits"
    assert names.index("memory") < names.index("decoder.embedding.token_ids")
    inner = ("scores", "masked_scores", "weights", "heads", "output")
    places = [names.index(f"decoder.layer1.cross_attention.{leaf}") for leaf in inner]
    assert places == sorted(places)
    assert torch.equal(trace["memory"], trace["encoder.final_norm.normalized"])


THREADS, CAPTURES = 8, 40
KEPT = ("*.token_ids", "*.weights", "*.heads", "*logits")


def sentence(thread: int) -> torch.Tensor:
    return torch.randint(1, 13, (1, 3 + thread % 4), generator=torch.Generator().manual_seed(thread))


@pytest.mark.parametrize("kind", [Classifier, Gpt])
def test_captures_of_threads_do_not_mix(kind):
    model = made(kind, positions="alibi", n_layers=1)
    start, expected = Barrier(THREADS), []
    for thread in range(THREADS):
        output, trace = capture(model, sentence(thread), sites=KEPT)
        expected.append((output, {name: tensor.clone() for name, tensor in trace.items()}))

    def work(thread: int) -> int:
        ids, (output, tensors) = sentence(thread), expected[thread]
        start.wait()
        for _ in range(CAPTURES):
            again, seen = capture(model, ids, sites=KEPT)
            assert list(seen) == list(tensors)
            assert torch.allclose(again, output, atol=1e-6)
            assert all(torch.allclose(seen[name], tensor, atol=1e-6) for name, tensor in tensors.items())
        return CAPTURES

    with ThreadPoolExecutor(THREADS) as pool:
        assert sum(pool.map(work, range(THREADS))) == THREADS * CAPTURES


def test_edits_of_one_thread_stay_there():
    model, ids = made(Gpt, n_layers=1), sentence(0)
    plain = capture(model, ids)[0]
    start = Barrier(2)

    def work(edits) -> list[torch.Tensor]:
        start.wait()
        return [capture(model, ids, edits=edits)[0] for _ in range(50)]

    with ThreadPoolExecutor(2) as pool:
        edited, untouched = pool.map(work, ({"*.heads": torch.zeros_like}, None))
    assert all(torch.equal(output, plain) for output in untouched)
    assert not any(torch.allclose(output, plain, atol=1e-2) for output in edited)
