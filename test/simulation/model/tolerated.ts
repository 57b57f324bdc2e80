// Where a store does something else than the contract says and nothing is lost by it, the model can follow the store,
// so that histories get past it to what matters more. Each is a difference to be settled, and should go.

const all = {
  /** A lane that is freed of its block by hand gets a new ticket although its deadline stays. */
  freeingDrawsAnew: true,
  /** An event appended again after its identity was forgotten is a conflict with itself, not `repeated`. */
  conflictWithItself: true,
  /** The letter of a purged live run is listed, without events, until that run has ended. */
  purgedLetterStaysWhileItRuns: true,
  /** What a run leaves over has no cap any more: its next run can be cancelled at any time. */
  leftoverLosesItsCap: true,
  /** Replays that are purged or dropped leave the count of live turns to those that come before the next live turn. */
  turnsStayWhenReplaysGo: true,
  /** A purge of a lane in several calls leaves finished events of its runs behind. */
  purgeInStepsForgetsTheFinished: true,
  /** A run that is dropped, purged or crashes between attempts makes the lane forget when an earlier one ended. */
  endsWithoutKeepForget: true,
  /** The cap of a purged event stays with those that waited beside it. */
  capOfThePurged: true,
  /** The settlement of a purged run takes no notice of `whileRunning` and `keep`. */
  purgedEndsPlainly: true,
  /** A repeated place of a mark that was placed says `lost`, not `already`. */
  placedMarkIsLost: true,
}

const strict = (process.env['SLUICE_STRICT'] ?? '').split(',')

/** SLUICE_STRICT names those that a hunt should not let pass, or is `all`. */
export const tolerated: Readonly<Record<keyof typeof all, boolean>> = Object.fromEntries(
  Object.keys(all).map((name) => [name, !strict.includes('all') && !strict.includes(name)]),
) as Record<keyof typeof all, boolean>
