// The entry point `sluice/testing`: `testApp` runs an app under a virtual clock.
export { testApp, type TestApp, type TestOptions, type TestRun } from './test-app.ts'
export type { TestFetch } from './outgoing.ts'
export { VirtualClock } from './virtual-clock.ts'
