// An endpoint that no delivery can reach is noted. A filter that might match is never doubted.
import { expect, test } from 'vitest'
import { describeUnreachable } from '../../src/deliver/reach.ts'

const reachOf = (filter: readonly string[], ...globs: (readonly string[] | undefined)[]): string | undefined =>
  describeUnreachable(filter, new Map(globs.map((each, n) => [`d${n}`, { globs: each }])))

test.each<[readonly string[], ...(readonly string[] | undefined)[]]>([
  [['**'], ['version.*']],
  [['version.new'], ['version.*']],
  [['version.*'], ['version.new', 'other']],
  [['shop/order.*'], ['order.paid']],
  [['order.paid'], ['shop/*']],
  [['*.paid'], ['order.*']],
  [['verion.*'], ['version.*'], ['**']],
  [['verion.*'], ['version.*'], undefined],
  [['other', 'version.new'], ['version.*']],
])('%j may be reached by %j %j', (filter, ...globs) => {
  expect(reachOf(filter, ...globs)).toBeUndefined()
})

test.each<[readonly string[], ...(readonly string[])[]]>([
  [['verion.*'], ['version.*']],
  [['version.nwe'], ['version.new']],
  [['shop/order.*'], ['store/order.*']],
  [['*.created'], ['*.paid']],
  [['verion.*', 'verion.new'], ['version.*'], ['order.**']],
])('%j is reached by none of %j %j', (filter, ...globs) => {
  expect(reachOf(filter, ...globs)).toMatch(/^No delivery of this app takes .* d0 takes .*Correct the event filter/)
})
