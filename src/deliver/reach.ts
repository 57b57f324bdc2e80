// Recognises an endpoint that no delivery can reach, e.g. because its event filter is misspelled.

export interface ReachableDelivery {
  /** Undefined for a predicate, which may take any event. */
  readonly globs?: readonly string[] | undefined
}

/** `describeUnreachable` returns why no delivery of this app can take an event that the endpoint wants, or undefined. */
export function describeUnreachable(
  eventFilter: readonly string[],
  deliveries: ReadonlyMap<string, ReachableDelivery>,
): string | undefined {
  if (deliveries.size === 0)
    return 'This app has no delivery, so it sends nothing to the endpoint. Declare one with app.delivery, unless another process has it.'
  const reaches = ({ globs = ['**'] }: ReachableDelivery): boolean =>
    globs.some((glob) => eventFilter.some((wanted) => mayOverlap(glob, wanted)))
  const all = [...deliveries]
  if (all.some(([, delivery]) => reaches(delivery))) return undefined
  const taken = all.map(([name, { globs = [] }]) => `${name} takes ${globs.join(' and ')}`).join(', ')
  return `No delivery of this app takes ${eventFilter.join(' or ')}, so it sends nothing to the endpoint: ${taken}. Correct the event filter, unless another process delivers these events.`
}

/** Returns false only if no name matches both globs. */
function mayOverlap(one: string, other: string): boolean {
  const [first, second] = [splitGlob(one), splitGlob(other)]
  return haveCommonEnds(first.source, second.source) && haveCommonEnds(first.type, second.type)
}

/** A glob without a slash is for the type alone. */
function splitGlob(glob: string): { readonly source: string; readonly type: string } {
  const slash = glob.indexOf('/')
  return slash === -1 ? { source: '*', type: glob } : { source: glob.slice(0, slash), type: glob.slice(slash + 1) }
}

/** Compares the texts before the first and after the last wildcard. */
function haveCommonEnds(one: string, other: string): boolean {
  if (!one.includes('*') && !other.includes('*')) return one === other
  const [start, otherStart] = [startOf(one), startOf(other)]
  const [end, otherEnd] = [endOf(one), endOf(other)]
  const startsAlike = start.startsWith(otherStart) || otherStart.startsWith(start)
  return startsAlike && (end.endsWith(otherEnd) || otherEnd.endsWith(end))
}

function startOf(glob: string): string {
  const star = glob.indexOf('*')
  return star === -1 ? glob : glob.slice(0, star)
}

function endOf(glob: string): string {
  return glob.slice(glob.lastIndexOf('*') + 1)
}
