// What a tab knows of a run: news carries only the points of curves that are new.

const CURVES = ["loss", "tested", "energy_mj", "spread_mj"];
const key = (track) => `${track.scheme} ${track.seed}`;

/** The run after some news of it; `before` is what was known, or null. */
export function after(before, news) {
  const same = before !== null && before.generation === news.generation;
  const old = new Map((same ? before.tracks : []).map((track) => [key(track), track]));
  const gone = news.tracks.length === 0 && before !== null && news.state !== "running";
  const tracks = gone ? before.tracks : news.tracks.map((track) => {
    const earlier = old.get(key(track));
    const joined = { ...track };
    for (const name of CURVES) joined[name] = earlier && track.from > 0 ? [...earlier[name].slice(0, track.from), ...track[name]] : track[name];
    return joined;
  });
  return { ...(before ?? {}), ...news, tracks, scenario: news.scenario ?? before?.scenario ?? {} };
}

/** Schemes in the order of the run, each with the tracks that have rounds. */
export function schemes(run) {
  const named = new Map();
  for (const track of run.tracks) named.set(track.scheme, [...(named.get(track.scheme) ?? []), ...(track.rounds ? [track] : [])]);
  return [...named].map(([name, tracks]) => ({ name, tracks }));
}

/** The mean over seeds of what is known. */
export function mean(values) {
  const known = values.filter((value) => value !== null && value !== undefined);
  return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
}
