"""Three deliberately wrong regret budgets: the negative controls of A1 to A5. Each breaks one line of the rule."""

from __future__ import annotations

import math
from typing import Any

from .regret_budget import RegretBudget


class BudgetResetEachBlock(RegretBudget):
    """Starts every block with the whole budget: a request can spend B a block (breaks A1)."""

    def settle(self, remaining: Any, charge: Any, rejected: Any) -> Any:
        return self.budget


class RejectedTokensCharged(RegretBudget):
    """Charges the token that ended the prefix too: later prefixes are shorter than the budget allows (breaks A5)."""

    def settle(self, remaining: Any, charge: Any, rejected: Any) -> Any:
        return max(remaining - charge - (rejected if rejected < math.inf else 0), 0)


class GateWithoutValue(RegretBudget):
    """Tests r <= g, whatever is left of the block: too lax for `normalized` (breaks A3), too strict for `suffix` (A5)."""

    def within_gate(self, regret: Any, position: int, size: int) -> bool:
        return bool(regret < math.inf and regret <= self.gate)


BROKEN_BUDGETS = (BudgetResetEachBlock, RejectedTokensCharged, GateWithoutValue)
