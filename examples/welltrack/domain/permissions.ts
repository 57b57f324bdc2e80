// What a person lets Garmin share, and which data that covers.

const HEALTH = 'HEALTH_EXPORT'
const ACTIVITY = 'ACTIVITY_EXPORT'
const HISTORY = 'HISTORICAL_DATA_EXPORT'

/** A list, or the bracketed text that Garmin's REST API shows. Undefined: not known, so everything may be fetched. */
export function parsePermissions(value: unknown): readonly string[] | undefined {
  if (Array.isArray(value)) return value.filter((one) => typeof one === 'string')
  if (typeof value !== 'string') return undefined
  return value
    .replaceAll(/[[\]"\s]/g, '')
    .split(',')
    .filter((one) => one !== '')
}

export function maySend(type: string, permissions: readonly string[] | undefined): boolean {
  return permissions === undefined || permissions.includes(type === 'activities' ? ACTIVITY : HEALTH)
}

export function mayBackfill(type: string, permissions: readonly string[] | undefined): boolean {
  return permissions === undefined || (maySend(type, permissions) && permissions.includes(HISTORY))
}
