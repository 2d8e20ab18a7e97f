"""Loops that check their sums only now and then."""
from ._lib import Invalid

GROWN = 10  # a correct descent does not multiply its loss by this factor


class Audit:
    """Keeps the state of a loop, and decides when to go back (src/learn/audit.h).

    The loop keeps its state whenever a check finds no faulty worker. It returns to
    that state if a check finds one, numbers are not finite, or the loss has grown.
    Then all sums are checked until the loop is past that step.

    total   the Sum.
    keep    keep() returns the current state.
    put     put(state) restores it.
    """

    def __init__(self, total, keep, put):
        self._sum, self._keep, self._put = total, keep, put
        self._on = total.audited > 1
        self._kept = (0, None, keep()) if self._on else None
        self._unsure = False
        self._until = -1

    def before(self, step, last):
        """Prepares a step; the sum of the last step is checked."""
        if self._on:
            self._sum.audit(1 if last or step <= self._until else self._sum.audited)

    def _doubtful(self, report, loss, failed):
        if failed:
            return self._unsure or report is None or report.unchecked > 0
        if not self._unsure or report.unchecked:
            return False
        before = self._kept[1]
        return report.corrupt > 0 or \
            before is not None and not loss <= GROWN * before

    def after(self, step, report, loss, failed=None):
        """Returns the next step. `failed` is the Invalid that this step raised; it is
        raised again unless unchecked sums explain it."""
        if not self._on:
            if failed:
                raise failed
            return step + 1
        if self._doubtful(report, loss, failed):
            at, _, state = self._kept
            self._put(state)
            self._unsure, self._until = False, step
            return at
        if failed:
            raise failed
        self._unsure = report.unchecked > 0
        if not self._unsure:
            self._kept = (step + 1, loss, self._keep())
        return step + 1

    def step(self, step, last, compute):
        """Runs compute(). Returns the next step and the loss."""
        self.before(step, last)
        loss, failed = None, None
        try:
            loss = compute()
        except Invalid as error:
            failed = error
        return self.after(step, self._sum.report, loss, failed), loss

    def end(self):
        """Lets sums be checked as the options say."""
        if self._on:
            self._sum.audit(self._sum.audited)
