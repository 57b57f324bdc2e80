// What the fragments in the documents take from around them: an app, and functions of the user's own domain.
import type { Run, Sluice } from 'sluice'

declare global {
  const app: Sluice
  const secret: string
  function run(run: Run): Promise<void>
  function answer(run: Run): Promise<void>
  function check(run: Run): Promise<void>
  function rank(key: string, signal: AbortSignal): Promise<void>
  function notify(events: readonly unknown[]): Promise<void>
  function tellOnCall(run: Run): Promise<void>
  function page(text: unknown): Promise<void>
  function findAlert(id: string | undefined): Promise<object>
  function createAlert(request: Request): Promise<Response>
}
