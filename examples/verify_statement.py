"""Verify a privacy statement without fairwave: no total in the file is believed, all follow from its events."""

import argparse
import functools
import hashlib
import json
import math
import re
from collections import Counter, defaultdict

import dp_accounting as dp
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from dp_accounting import pld, rdp

RULES = {"value_discretization_interval": 1e-3, "renyi_above_epsilon": 200.0, "renyi_above_releases": 10_000_000}
EVERY_ROUND = (("update", "device"), ("model", "access point"), ("deviation", "access point"))
LISTENERS = r"any other device|(all|any \d+) other devices together|the public"
COLUMNS = ("devices", "noise_std", "sampling", "steps", "lost_delta")


def require(holds, complaint):
    """Refuse the file unless something holds."""
    if not holds:
        raise ValueError(complaint)


def canonical(value):
    """The only form in which a statement is written."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def sound(said):
    """Refuse names, types and ranges that no honest statement has, and on which the totals rest."""
    tracks, trusted = said["tracks"], said["adversary"]["access_point"] == "trusted"
    require(0 < said["delta"] < 1, "delta is no probability")
    require(len({(track["scheme"], track["seed"]) for track in tracks}) == len(tracks), "a track is there twice")
    for track in tracks:
        events = track["events"] + track["unfinished"]
        require([e["round"] for e in events] == sorted(e["round"] for e in events), "events are not in their order")
        require(all(re.fullmatch(LISTENERS, name) for name in track["listeners"]), "an unknown audience")
        for event in events:
            columns, bound, device = [event[name] for name in COLUMNS], event["proven_sensitivity"], event["sender"]
            whole = [*event["devices"], *event["subjects"], *event["steps"], event["round"]]
            reals = [*event["noise_std"], *event["lost_delta"], *event["sampling"], 1.0 if bound is None else bound]
            holds = all(type(x) is int and x >= 0 for x in whole) and len({len(column) for column in columns}) == 1
            holds &= all(type(x) is float and 0 <= x < math.inf for x in reals) and all(0 < x <= 1 for x in columns[2])
            holds &= event["basis"] == "data" or (event["basis"] == "messages" and device != "device" and not trusted)
            holds &= device == "access point" or (device == "device" and not (trusted and bound is not None))
            require(holds, f"no honest event: {event}")


@functools.cache
def cost(releases, delta):
    """Epsilon of releases, each with noise multiplier, sampling probability and count."""
    if delta <= 0 or any(z == 0 for z, _, _ in releases):
        return math.inf
    square = math.fsum(count / z**2 for z, _, count in releases)
    if all(share >= 1 for _, share, _ in releases):  # together they are one Gaussian release
        return dp.get_epsilon_gaussian(square**-0.5, delta) if square else 0.0
    noises = [(dp.GaussianDpEvent(z), share, count) for z, share, count in sorted(releases)]
    sampled = [(dp.PoissonSampledDpEvent(share, one) if share < 1 else one, count) for one, share, count in noises]
    event = dp.ComposedDpEvent([dp.SelfComposedDpEvent(one, count) for one, count in sampled])
    bound = rdp.RdpAccountant().compose(event).get_epsilon(delta)
    if bound > RULES["renyi_above_epsilon"] or sum(n for _, _, n in releases) > RULES["renyi_above_releases"]:
        return bound
    return pld.PLDAccountant(value_discretization_interval=1e-3).compose(event).get_epsilon(delta)


def worst(accounts, delta):
    """The largest epsilon of any account; an account counts releases by kind and has its lost delta under None."""
    return max(cost(frozenset((*k, n) for k, n in one.items() if k and n), delta - one[None]) for one in accounts)


def add_up(events):
    """What is told about each device. Without a proven sensitivity nothing bounds it, as without noise."""
    accounts = defaultdict(Counter)
    for event in events:
        bound = event["proven_sensitivity"] or math.inf
        for device, std, share, steps, lost in zip(*(event[name] for name in COLUMNS), strict=True):
            accounts[device].update({(std / bound, share): steps if bound < math.inf else 1, None: lost})
    return {device: Counter({kind: n for kind, n in one.items() if n}) for device, one in accounts.items()}


def heard(events):
    """What devices hear about each: all rounds up to the last copy that anybody heard, each at its least noise."""
    last = max((at for at, event in enumerate(events) if event["devices"]), default=-1)
    for event in events[: last + 1]:
        least, lost = min(event["noise_std"], default=0.0), max(event["lost_delta"], default=0.0)
        one = {"noise_std": least, "lost_delta": lost, "sampling": 1.0, "steps": 1}
        yield {**event, "devices": event["subjects"], **{name: [one[name]] * len(event["subjects"]) for name in one}}


def largest(accounts):
    """An upper bound for every device of a seed, to be added to other seeds, which may split the data differently."""
    kinds = [[(*kind, n) for kind, n in one.items() if kind] for one in accounts]
    square = max(math.fsum(n / z**2 if z else math.inf for z, share, n in one if share >= 1) for one in kinds)
    most = Counter({None: max(one[None] for one in accounts), **({(square**-0.5, 1.0): 1} if square else {})})
    for noise in {z for one in kinds for z, share, _ in one if share < 1}:
        alike = [[(share, n) for z, share, n in one if z == noise and share < 1] for one in kinds]
        most[noise, max(share for one in alike for share, _ in one)] = max(sum(n for _, n in one) for one in alike)
    return most


def derived(said):
    """Every epsilon that follows from the events, by scheme, seed and what it is about."""
    follows, seeds, point = {}, defaultdict(dict), said["adversary"]["access_point"] != "trusted"  # an adversary
    for track in said["tracks"]:
        name, events = (track["scheme"], track["seed"]), track["events"] + track["unfinished"]
        there = {(e["round"], e["content"], e["sender"]) for e in track["events"] if e["sender"] == "device" or point}
        kinds = {tuple(kind) for _, *kind in there}.union(EVERY_ROUND[: 3 if point else 1])
        require({(n, *kind) for n in range(track["rounds"]) for kind in kinds} == there, f"{name}: an event is missing")
        sent, received = ([e for e in events if e["sender"] == party] for party in ("device", "access point"))
        from_data = [event for event in received if event["basis"] == "data"]
        senders, told = add_up(sent), add_up(heard(from_data))
        accounts = {f"device {device}": {device: account} for device, account in senders.items()}
        listeners = (told if from_data else senders) if any(event["devices"] for event in received) else {}
        accounts |= {"access point": senders, **dict.fromkeys(track["listeners"], listeners)}
        if said["nominal_sensitivity"] and any(any(e["noise_std"]) for e in received if e["content"] == "model"):
            assumed = {"proven_sensitivity": said["nominal_sensitivity"], "subjects": [0]}
            copies = [{**event, **assumed} for event in received if event["content"] == "model" and event["devices"]]
            pooled = heard(copies) if track["pooled"] == "least noisy" else copies
            together = [{**event, "devices": [0] * len(event["devices"])} for event in pooled]
            accounts |= {"nominal: most exposed device": add_up(copies), "nominal: all devices": add_up(together)}
        follows |= {(*name, about): worst(each.values(), said["delta"]) for about, each in accounts.items() if each}
        for device, account in (senders if point else told).items():
            seeds[track["seed"]][device] = seeds[track["seed"]].get(device, Counter()) + account
    every = [list(accounts.values()) for accounts in seeds.values()]
    total = every[0] if len(every) == 1 else [sum(map(largest, every), Counter())]
    follows["all", "all", "everything together"] = worst(total, said["delta"])
    for row in said["filter"]["allowed"] if said["filter"] else ():
        one = {(row["noise_multiplier"], row["sampling"]): row["most_releases"]}
        value = worst([Counter({**one, None: row["most_releases"] * row["lost_delta"]})], said["delta"])
        require(value <= said["filter"]["max_epsilon"], "the privacy filter allows more than its budget")
        follows["all", row["seed"], f"filter of devices {row['devices']}"] = value
    return follows


def verify(raw, public_key):
    """Print what is stated and what follows from the events; refuse a changed file, another key, any difference."""
    said = json.loads(raw)
    require(canonical(said) + b"\n" == raw, "the file was changed: it is not in canonical form")
    body = canonical({name: value for name, value in said.items() if name not in ("digest", "signature")})
    require(hashlib.sha256(body).hexdigest() == said["digest"], "the file was changed: its digest differs")
    require(said["signature"] or public_key is None, "the statement is not signed")
    if said["signature"]:
        key, value = (bytes.fromhex(said["signature"][name]) for name in ("public_key", "value"))
        mark = {"algorithm": "Ed25519", "public_key": key.hex()}
        require(said["signature"] == {**mark, "value": value.hex()}, "the file was changed: its signature differs")
        require(public_key in (None, key), "the statement is signed with another key than the one given")
        Ed25519PublicKey.from_public_bytes(key).verify(value, canonical({**said, "signature": mark}))
    stated = {(row["scheme"], row["seed"], row["about"]): row["epsilon"] for row in said["totals"]}
    once = len(stated) == len(said["totals"])
    require(once and RULES.items() <= said["accountant"].items(), "a total is there twice, or by other rules")
    sound(said)
    for name, value in derived(said).items():
        number = float(str(stated.pop(name, math.nan)).replace("infinite", "inf"))
        print(f"{name[0]:16} seed {name[1]:<4} {name[2]:40} stated {number:.6f}  recomputed {value:.6f}")
        require(number == value or abs(number - value) <= 1e-6 * min(1, value), f"{name}: {number} stated, not {value}")
    require(not stated, f"{list(stated)}: follows from no event")
    signer = said["signature"]["public_key"] if said["signature"] else "nobody"
    print(f"mode {said['mode']}, delta {said['delta']:g}, signed by {signer}: every epsilon agrees")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("statement", type=argparse.FileType("rb"))
    parser.add_argument("--public-key", type=argparse.FileType("rb"))
    given = parser.parse_args()
    try:
        key = given.public_key and load_pem_public_key(given.public_key.read()).public_bytes_raw()
        verify(given.statement.read(), key)
    except Exception as error:
        raise SystemExit(f"refused: {str(error) or 'the signature does not fit the file'}") from None
