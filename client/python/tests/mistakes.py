"""Mistakes that type checkers must report, one in each line that ends in `error`. It is not run."""

from toold import Toold

t = Toold()
t.exec("make", comand="x")  # error
t.poll()  # error
t.poll("id")  # error
t.list(status="walking")  # error
t.list()["procs"]  # error
t.exec("make").nme.upper  # fine: a field of a later version
t.exec("make").pid.upper  # error
