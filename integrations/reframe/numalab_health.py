"""A check for ReFrame: is each node's memory as good as its baseline?

    reframe -c integrations/reframe/numalab_health.py -S baseline=/etc/numalab/baseline -r

The figures are performance variables: the changes in percent against the baseline, of which
ReFrame keeps a log. The check fails where numalab finds the node failing, with its reason.
"""

import json

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import run_before, sanity_function, variable


@rfm.simple_test
class NumalabHealth(rfm.RunOnlyRegressionTest):
    """Memory latency, bandwidth and core clock of a node against its baseline."""

    descr = "memory latency, bandwidth and core clock against a baseline"
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "numalab"
    baseline = variable(str, value="/etc/numalab/baseline")
    failing_percent = variable(int, float, value=20)
    exclusive_access = True
    num_tasks_per_node = 1

    @run_before("run")
    def set_options(self):
        """Asks for the findings in JSON."""
        self.executable_opts = [
            "health", "-q", "--baseline", self.baseline,
            "--failing", str(self.failing_percent), "--format", "json",
        ]

    @sanity_function
    def is_not_failing(self):
        """Fails with the findings."""
        found = self._found()
        wrong = "; ".join(json.dumps(finding) for finding in found["findings"])
        return sn.assert_ne(found["severity"], "failing", msg=wrong)

    @run_before("performance")
    def set_figures(self):
        """Returns a performance variable for each figure."""
        for at, figure in enumerate(self._found()["figures"]):
            scope = figure["scope"]
            place = scope if isinstance(scope, str) else "-".join(map(str, *scope.items()))
            name = f"{place}-{figure['family']}".replace(" ", "-")
            self.perf_variables[name] = sn.make_performance_function(self._change, "%", at)

    def _change(self, at):
        return self._found()["figures"][at]["change_percent"]

    def _found(self):
        with open(f"{self.stagedir}/{self.stdout}") as output:
            return json.load(output)
