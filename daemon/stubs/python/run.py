"""Runner of a Python script: compiles it, runs it as __main__, reports an uncaught exception on the channel.

A script that calls no tool and ends well pays for no import here.
"""
import os
import sys


def run():
    here = os.path.dirname(os.path.abspath(__file__))
    file = os.environ.get("TOOLD_SCRIPT_FILE")
    path = os.path.abspath(file) if file else os.path.join(here, "main.py")
    sys.path[:1] = [here] + ([os.path.dirname(path)] if file else []) + [os.getcwd()]
    sys.argv[:] = [path]
    owner = os.getpid()
    main = type(sys)("__main__")
    main.__file__, main.__builtins__ = path, __builtins__
    try:
        with open(path, "rb") as source:
            code = compile(source.read(), path, "exec", dont_inherit=True)
    except (OSError, SyntaxError, ValueError) as error:
        end(error.with_traceback(None), path, owner)
    sys.modules["__main__"] = main
    try:
        exec(code, main.__dict__)
    except SystemExit:
        raise
    except BaseException as error:
        end(error.with_traceback(error.__traceback__.tb_next), path, owner)


def end(error, path, owner):
    """Prints the traceback, reports it, and exits like Python itself."""
    import toold_link
    import toold_report

    toold_link.link().settle()
    description = toold_report.describe(error, path)
    sys.excepthook(type(error), error, error.__traceback__)
    if os.getpid() == owner:  # the exception of a forked child is not the script's
        try:
            toold_link.link().report({"error": description})
        except toold_link.api.ToolError:
            pass  # refused: stderr has the traceback
    if isinstance(error, KeyboardInterrupt):
        import signal

        toold_link.flush()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    sys.exit(1)


run()
