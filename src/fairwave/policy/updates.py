"""What arrived at the access point in a round: the one container that defences, aggregation and schemes work on."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from fairwave.policy.training_evidence import RoundEvidence
from fairwave.types import FlagPerDevice, Params, PerDevice, UpdatePerDevice


class ServerKnowledge(eqx.Module):
    """What the access point knows beside the updates themselves, for defences that compare them with it."""

    model: Params
    """The access point's own model, of which the devices' copies were made."""
    copy_noise: Float[Array, "past device param"]
    """The noise that was added to it in each device's latest copies, the newest first; zero before there was one."""
    copy_change: UpdatePerDevice
    """The change of each device's copy from the round before; zero unless a defence asks for it."""
    last_sketches: Float[Array, "past device sketch"]
    """Sketches of the updates that each device sent last, the newest first; zero before it sent anything."""


class Updates(eqx.Module):
    """The updates of a round's participants, one row each, and what each participant reported with its update."""

    devices: Int[Array, " participant"]
    """The number of each participant."""
    arrived: FlagPerDevice
    """A mask of the updates that are there: in time, readable, and not refused by a defence."""
    rows: UpdatePerDevice
    """The updates as flat vectors; zero where there is none."""
    reported_noise_std: PerDevice
    """The std of the noise that each device says its training left in every value; 0 without private training."""
    reported_loss: PerDevice
    """The loss of the copy that each device received, on its own data; only some schemes ask for it."""
    num_samples: PerDevice
    """The number of samples that each device holds."""
    gain: PerDevice
    """By how much each update alone lowers the loss on the access point's own samples; NaN where it has none."""
    accuracy: PerDevice
    """The accuracy of the model moved by each update alone, on those samples; NaN where it has none."""
    evidence: RoundEvidence | None = None
    """Evidence of the work in each update; None where devices are not scored by it."""
    knowledge: ServerKnowledge | None = None
    """What the access point knows beside them; None where no defence is in use."""

    def of_all_devices(self, num_devices: int, used: FlagPerDevice) -> Updates:
        """The updates that are used, in the order of all devices; zero for everybody else."""
        each = jnp.zeros(num_devices)
        blank = jnp.zeros((num_devices, self.rows.shape[1]), self.rows.dtype)
        return Updates(
            devices=jnp.arange(num_devices),
            arrived=jnp.zeros(num_devices, bool).at[self.devices].set(used),
            rows=blank.at[self.devices].set(jnp.where(used[:, None], self.rows, 0.0)),
            reported_noise_std=each.at[self.devices].set(jnp.where(used, self.reported_noise_std, 0.0)),
            reported_loss=each.at[self.devices].set(jnp.where(used, self.reported_loss, 0.0)),
            num_samples=each.at[self.devices].set(jnp.where(used, self.num_samples, 0.0)),
            gain=jnp.full(num_devices, jnp.nan).at[self.devices].set(self.gain),
            accuracy=jnp.full(num_devices, jnp.nan).at[self.devices].set(self.accuracy),
        )
