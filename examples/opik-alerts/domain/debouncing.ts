// How long an alert collects events before it notifies, and the three settings that the design recommends, by name.

export interface Debouncing {
  readonly enabled: boolean
  /** In milliseconds, from the first event. */
  readonly window_size: number
}

const SECOND = 1_000

/** The window of a new alert without one of its own. */
export const DEFAULT_DEBOUNCING: Debouncing = { enabled: true, window_size: 60 * SECOND }

export const PRESETS = {
  /** E.g. error tracking. */
  'high-frequency': { enabled: true, window_size: 30 * SECOND },
  /** E.g. daily reports. */
  'low-frequency': { enabled: true, window_size: 300 * SECOND },
  /** A notification for each event. */
  'real-time': { enabled: false, window_size: 60 * SECOND },
} as const satisfies Readonly<Record<string, Debouncing>>

export function isPreset(name: unknown): name is keyof typeof PRESETS {
  return typeof name === 'string' && Object.hasOwn(PRESETS, name)
}

/** 0 means that an event is sent at once, alone. */
export function windowOf({ enabled, window_size }: Debouncing): number {
  return enabled ? window_size : 0
}
