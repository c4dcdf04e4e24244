"""Programs that check themselves, as programs that return what they check: XLA knows no operations that check."""
import re

# custom_call @check.expect_eq(%2, %1) {...} : (...) -> (), and @check.eq, which gives a flag that nobody reads.
_CALL = re.compile(r"^[ \t]*(?:%\w+ = )?stablehlo\.custom_call @check\.\w+\(.*\n", re.MULTILINE)
# check.expect_eq_const %2, dense<[1, 3]> : tensor<2xui2>, over several lines if it likes; check.expect_close %2, %3 : ...
_OPERATION = re.compile(r"^[ \t]*check\.expect_\w+ (%[\w#]+),[^:]*(?:dense<[^>]*>)?[^:\n]*: (.*)\n", re.MULTILINE)
# "check.expect_eq_const"(%0) <{value = dense<1> : tensor<i2>}> : (tensor<i2>) -> ()
_GENERIC = re.compile(r'"check\.(expect_\w+)"\((%[\w#]+)[^)]*\).*: \((.*)\) -> \(\)')
_FUNCTION = re.compile(r"func\.func (?:public )?@\w+\(\) \{")
_RETURN = re.compile(r"^([ \t]*)(?:func\.)?return[ \t]*$", re.MULTILINE)


def as_results(text):
    """The program without its checks; the text as it is, where it has none or takes a form not known here."""
    text = _GENERIC.sub(r"check.\1 \2, : \3", _CALL.sub("", text))
    checked = _OPERATION.findall(text)
    begin = text.find("check.expect_")
    functions = [f for f in _FUNCTION.finditer(text) if f.start() < begin]
    if not checked or not functions:
        return text
    head, body = text[:functions[-1].start()], text[functions[-1].end():]
    end = _RETURN.search(body)
    if not end or len(_OPERATION.findall(body[:end.start()])) != len(checked):
        return text
    values = ", ".join(value for value, _ in checked)
    types = ", ".join(re.split(", tensor<", type)[0] for _, type in checked)  # of two that are compared, the first
    body = _OPERATION.sub("", body[:end.start()]) + f"{end.group(1)}return {values} : {types}" + body[end.end():]
    return f"{head}func.func public @main() -> ({types}) {{{body}"
