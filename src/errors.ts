// `ERRORS` lists every error code of the package with its HTTP status and fix. Codes are public API: add codes, never rename one.
// docs/errors.md lists the same fixes.

const CATALOGUE = {
  CONFIG_INVALID: { status: 500, fix: 'Correct the option that the message names.' },
  CONFIG_MISSING: {
    status: 500,
    fix: 'Write a first one with sluice init, or name another file whose default export is the app with --config.',
  },
  NODE_TOO_OLD: { status: 500, fix: 'Install a newer Node.js: https://nodejs.org' },
  EVENT_INVALID: { status: 400, fix: 'Correct the field that the message names, then send the event again.' },
  ENDPOINT_INVALID: { status: 400, fix: 'Correct the field that the message names, then try again.' },
  TRANSFORM_BUSY: {
    status: 503,
    fix: 'Try again shortly. If it persists, look for transformations that run out of time.',
  },
  APP_STOPPED: { status: 503, fix: 'Make the call before stop(), or in another process.' },
  RUN_LOST: { status: 409, fix: 'End the handler: another process may be running the same work.' },
  LIMIT_TOO_SLOW: {
    status: 503,
    fix: 'Speed up the store, reduce the load of the event loop, or increase `per` of the limit. A slot is valid for a tenth of `per`, at most 100 ms.',
  },
  ENCRYPTION_KEY_UNKNOWN: {
    status: 500,
    fix: 'Add the old key after the newest one: SLUICE_ENCRYPTION_KEY=<new>,<old>, or the second entry of encryptionKey.',
  },
  NOT_ENCRYPTED: {
    status: 500,
    fix: 'If the event is older than the encrypt option, turn encrypt off until the event is done. Otherwise restore the store, or purge the event.',
  },
  LISTEN_FAILED: {
    status: 500,
    fix: 'Choose another port (PORT, --port or the option port) or host, or stop the process that uses it.',
  },
  STORE_UNKNOWN: { status: 500, fix: 'Use memory:, sqlite:<file>, postgres://… or redis://….' },
  STORE_IN_USE: {
    status: 503,
    fix: 'Stop the other process, or share one app within a process. To only read the file, use openStore with readOnly: true.',
  },
  STORE_NOT_A_DATABASE: { status: 500, fix: 'Use the path of another file, or move this file away.' },
  STORE_SCHEMA_NEWER: { status: 500, fix: 'Run a release of sluice at least as new as the one that wrote the store.' },
  STORE_MISSING: { status: 500, fix: 'Check the path. The process that works on the file creates it.' },
  STORE_UNWRITABLE: { status: 500, fix: 'Create the folder, and permit the process to write the file and its folder.' },
  STORE_REFUSED: {
    status: 500,
    fix: 'Correct the user, the password or the database in the address. Create the database if it does not exist.',
  },
  STORE_FULL: { status: 507, fix: 'Free disk space, or raise maxBytes. All acknowledged events are kept.' },
  STORE_DAMAGED: { status: 500, fix: 'Restore the store from a backup.' },
  STORE_CLOSED: { status: 503, fix: 'Open the store again. Nothing was written.' },
  STORE_FAILED: { status: 503, fix: 'Try again; this call wrote nothing. If it fails again, see the cause.' },
  STORE_SYNC_FAILED: {
    status: 503,
    fix: 'Check the disk, then restart the process. The last write may not have reached the disk.',
  },
  STORE_REPLACED: {
    status: 503,
    fix: 'Stop the process, then restore the file with its -wal, or a backup. They contain what was acknowledged before.',
  },
  STORE_TAKEN: {
    status: 503,
    fix: 'Run one process per file: stop the other one, then restart this one. Do not remove the -lock file while a process works.',
  },
  STORE_UNREACHABLE: {
    status: 503,
    fix: 'Check that the server runs, that it accepts writes, and that the address is right. An interrupted call may be repeated.',
  },
  STORE_DRIVER_MISSING: { status: 500, fix: 'Install it beside sluice: npm install pg, or npm install redis.' },
  STORE_NOT_DURABLE: {
    status: 500,
    fix: 'Turn the setting on, or open the store with acceptLoss: true if you accept the loss of acknowledged events.',
  },
  STORE_POOLER_UNSUPPORTED: {
    status: 500,
    fix: 'Connect to the server directly, or to a pooler in session mode. Sluice needs its session state.',
  },
  STORE_READ_ONLY: { status: 500, fix: 'Open the store without readOnly to write.' },
  NOT_FOUND: { status: 404, fix: 'Look for it in the list. Retention or an operator may have removed it.' },
  REQUEST_INVALID: { status: 400, fix: 'Correct the field that the message names.' },
  KEY_MISSING: { status: 401, fix: 'Send Authorization: Bearer <key>; `sluice keys create` creates a key.' },
  KEY_INVALID: { status: 401, fix: 'Use a key that `sluice keys` lists. A revoked key cannot be restored.' },
  ROLE_TOO_LOW: { status: 403, fix: 'Use a key with a role that the message names.' },
  TENANT_NOT_ALLOWED: { status: 403, fix: 'Leave tenant out, or use a key of that tenant.' },
  TOKEN_NOT_ALLOWED: {
    status: 403,
    fix: 'Use an API key. The token of a subscriber permits only deliveries, test, replay and rotate-secret of its own endpoint.',
  },
  OPERATOR_KEY_REQUIRED: {
    status: 409,
    fix: 'Create a key with the role operate first. The last such key can be revoked only after all other keys.',
  },
  CROSS_SITE: { status: 403, fix: 'Call the API from its own origin, or from outside of a browser.' },
  CONFLICT: { status: 409, fix: 'Correct what the message names, or wait until it has changed, then try again.' },
  METHOD_NOT_ALLOWED: { status: 405, fix: 'See /openapi.json for the methods of this path.' },
  BODY_NOT_JSON: { status: 415, fix: 'Send JSON with content-type: application/json.' },
  BODY_TOO_LARGE: { status: 413, fix: 'Send at most 1 MB.' },
  TOO_MANY_REQUESTS: { status: 429, fix: 'Wait for the time in the retry-after header, then try again.' },
  API_FAILED: { status: 500, fix: 'See the log of the process.' },
  REQUEST_STALE: {
    status: 409,
    fix: 'Give the requests of a process increasing numbers, and repeat only the last one.',
  },
} as const

export type ErrorCode = keyof typeof CATALOGUE

export const ERRORS: Readonly<Record<ErrorCode, { readonly status: number; readonly fix: string }>> = CATALOGUE

/** `SluiceError` is the error of the package. Its message contains the code, what is wrong, and the fix. */
export class SluiceError extends Error {
  override readonly name = 'SluiceError'
  readonly code: ErrorCode
  readonly status: number
  readonly fix: string

  /** `fix` replaces the fix of the code where another one is better. */
  constructor(code: ErrorCode, message: string, cause?: unknown, fix: string = ERRORS[code].fix) {
    super(`${code}: ${message} ${fix}`, cause === undefined ? undefined : { cause })
    this.code = code
    this.status = ERRORS[code].status
    this.fix = fix
  }
}

/** `messageOf` returns the message of a thrown value, which need not be an `Error`. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
