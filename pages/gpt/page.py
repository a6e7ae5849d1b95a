"""GPT: the next token, sampling, writing on, the cache, drafts, verse, layers' answers, why this token, the mask."""

from pages.gpt.cache import CACHE
from pages.gpt.draft import DRAFT
from pages.gpt.draw import DRAW
from pages.gpt.lens import LENS
from pages.gpt.mask import MASK
from pages.gpt.next import NEXT
from pages.gpt.text import header_of_gpt
from pages.gpt.verse import VERSE
from pages.gpt.why import WHY
from pages.gpt.write import WRITE
from pages.room import Page

SITES = ("logits", "decoder.final_norm.*", "decoder.*")
GPT = Page("gpt", header_of_gpt, (NEXT, DRAW, WRITE, CACHE, DRAFT, VERSE, LENS, WHY, MASK), sites=SITES)

if __name__ == "__main__":
    GPT.show()
