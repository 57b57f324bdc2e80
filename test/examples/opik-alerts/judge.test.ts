// The judge of the load notices what it must.
import { expect, it } from 'vitest'
import type { NotificationBody } from '../../../examples/opik-alerts/domain/notification.ts'
import { judge, type Published } from './load.ts'

function event(id: string, at: number): Published {
  return { id, at, from: at, to: at + 5, workspace: 'w', type: 'trace:errors' }
}

function body(...eventIds: readonly string[]): NotificationBody {
  return { payload: { eventIds } } as unknown as NotificationBody
}

it('counts a window from its first event, and the next one from the first event after it', () => {
  const events = [event('a', 0), event('b', 4_000), event('c', 17_000), event('d', 19_000)]
  const whole = { notifications: 2, windows: 2, doubtful: 0, missing: 0, repeated: 0 }
  expect(judge(events, [body('a', 'b'), body('c', 'd')])).toEqual(whole)
})

it('notices a missing event, a repeated one, a notification too many, and an event near the end of a window', () => {
  const events = [event('a', 0), event('b', 9_800)]
  expect(judge(events, [body('a'), body('a')])).toMatchObject({
    missing: 1,
    repeated: 1,
    windows: 1,
    notifications: 2,
    doubtful: 1,
  })
  expect(judge([event('a', 0), { ...event('c', 10_001), type: 'trace:cost' }], [])).toMatchObject({
    windows: 2,
    missing: 2,
  })
})
