"""Descriptions of exceptions, for reports of scripts and kernels."""
import traceback

import toold_link


def describe(error, path):
    """Describes an exception for a report. Frames of the runner and of the stub are left out."""
    own = (toold_link.__file__, toold_link.api.__file__)
    seen, line = set(), None
    each = error
    while each is not None and id(each) not in seen:
        seen.add(id(each))
        last, step = None, each.__traceback__
        while step is not None:
            if step.tb_frame.f_code.co_filename in own and last is not None:
                last.tb_next = None
                break
            if each is error and step.tb_frame.f_code.co_filename == path:
                line = step.tb_lineno
            last, step = step, step.tb_next
        each = each.__cause__ or each.__context__
    if isinstance(error, SyntaxError) and error.filename == path:
        line = error.lineno
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return {"type": type(error).__name__, "message": clean(str(error)[:65536]), "line": line, "traceback": clean(text[-65536:])}


def clean(text):
    """Replaces characters that JSON text cannot have."""
    return text.encode("utf-8", "replace").decode()
