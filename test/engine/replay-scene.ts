// Shared by the tests of replays: a flow, and what it ran.
import type { Replay } from '../../src/index.ts'
import type { TestApp } from '../../src/testing/index.ts'
import { userOf, type Declare } from './scene.ts'

export const simple: Declare = (app) => app.flow('f', { on: 'ping', key: userOf, retry: [], run: () => {} })

/** The numbers of the events of each run of the flow. */
export function ran(t: TestApp, flow = 'f'): readonly (readonly unknown[])[] {
  return t.runs.filter((run) => run.flow === flow).map((run) => run.events.map((data) => (data as { n: number }).n))
}

export async function shown(t: TestApp, id: string): Promise<Replay | undefined> {
  return t.app.admin.replays.show(id)
}
