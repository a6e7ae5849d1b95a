"""The labels of a logarithmic axis: plain numbers where they are short, else powers of ten as in a book."""

_POWER = "floor(log(datum.value) / LN10 + 1e-9)"
_LEADING = f"round(datum.value / pow(10, {_POWER}))"
_DIGITS = f"{list('⁰¹²³⁴⁵⁶⁷⁸⁹')}"
_SUPERSCRIPT = (
    f"({_POWER} < 0 ? '⁻' : '') + (abs({_POWER}) > 9 ? {_DIGITS}[floor(abs({_POWER}) / 10)] : '')"
    f" + {_DIGITS}[abs({_POWER}) % 10]"
)
LABELS = (
    "datum.value >= 0.001 && datum.value < 1e6 ? format(datum.value, '~r')"
    f" : ({_LEADING} == 1 ? '' : {_LEADING} + '×') + '10' + {_SUPERSCRIPT}"
)  # in Vega's language
