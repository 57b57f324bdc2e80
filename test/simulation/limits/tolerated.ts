// As model/tolerated.ts: differences from the contract that are to be settled, so that histories get past them.

const all = {
  /** After a pause, calls that were made just before it no longer count: more than `rate` in one window. */
  pauseForgetsWhatWasUsed: true,
  /** After slots were given back, calls made before them no longer count: more than `rate` in one window. */
  releaseForgetsWhatWasUsed: true,
  /** A ticket of several limits, one of which was paused, goes behind tickets of the others that came after it. */
  severalLoseTheirOrderByAPause: true,
}

const strict = (process.env['SLUICE_STRICT'] ?? '').split(',')

/** SLUICE_STRICT names those that a hunt should not let pass, or is `all`. */
export const tolerated: Readonly<Record<keyof typeof all, boolean>> = Object.fromEntries(
  Object.keys(all).map((name) => [name, !strict.includes('all') && !strict.includes(name)]),
) as Record<keyof typeof all, boolean>
