"""The sessions of README.md give what is printed there."""

import doctest
import os
import unittest

import rig


class Readme(unittest.TestCase):
    def test_the_sessions_run_as_printed(self):
        daemon = rig.Daemon()
        self.addCleanup(daemon.stop)
        path = os.path.join(rig.PACKAGE, "README.md")
        with open(path) as file:
            text = file.read().replace("```", "")
        session = doctest.DocTestParser().get_doctest(text, {}, "README.md", path, 0)
        report = []
        result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(session, out=report.append)
        self.assertEqual((result.failed, result.attempted > 30), (0, True), "".join(report))


if __name__ == "__main__":
    unittest.main()
