// The settings of a tenant, under the names that the design gives them, with their bounds and defaults.

export interface Settings {
  /** Which of the tenant's conversation flows answers on this line. */
  readonly flow_id: string
  /** How long a person must be silent before the answer. */
  readonly wait_time_before_replying_ms: number
  /** How long the first unanswered message waits at most. */
  readonly longest_wait_ms: number
  readonly typing_indicator_enabled: boolean
  /** True: each message restarts the wait and cancels an answer in the making. False: the wait counts from the first message. */
  readonly message_reset_enabled: boolean
  /** Whether a reply takes about as long as a person needs to type it. */
  readonly natural_delays_enabled: boolean
  readonly delay_variance_percent: number
  /** The text sent instead of an answer that failed permanently; '' sends nothing. */
  readonly fallback_text: string
  /** The system prompt of the model. */
  readonly prompt: string
}

export type SettingsChange = Partial<Settings>

const WAIT_MIN = 100
const WAIT_MAX = 120_000
const DAY = 86_400_000
/** The longest wait is this many times the wait, unless it is set. */
const LONGEST_FACTOR = 10

const DEFAULTS: Omit<Settings, 'flow_id' | 'longest_wait_ms'> = {
  wait_time_before_replying_ms: 60_000,
  typing_indicator_enabled: true,
  message_reset_enabled: true,
  natural_delays_enabled: true,
  delay_variance_percent: 20,
  fallback_text: 'Sorry, I cannot answer right now. Please write again later.',
  prompt: 'You are a helpful assistant on WhatsApp. Answer briefly.',
}

const RULES: Readonly<Record<keyof Settings, readonly [rule: string, holds: (value: unknown) => boolean]>> = {
  flow_id: ['a word of letters, digits, _ and -', (value) => typeof value === 'string' && /^[\w-]{1,64}$/.test(value)],
  wait_time_before_replying_ms: [`a whole number from ${WAIT_MIN} to ${WAIT_MAX}`, isWithin(WAIT_MIN, WAIT_MAX)],
  longest_wait_ms: [`a whole number from ${WAIT_MIN} to ${DAY}`, isWithin(WAIT_MIN, DAY)],
  typing_indicator_enabled: ['true or false', isBoolean],
  message_reset_enabled: ['true or false', isBoolean],
  natural_delays_enabled: ['true or false', isBoolean],
  delay_variance_percent: ['a whole number from 0 to 100', isWithin(0, 100)],
  fallback_text: ['a text', isText],
  prompt: ['a text', isText],
}

/** A setting that the tenant has not changed has its default. Without a `flow_id`, each line is a flow of its own. */
export function withDefaults(line: string, changed: SettingsChange): Settings {
  const settings = { flow_id: line.replaceAll(/[^\w-]/g, ''), ...DEFAULTS, ...changed }
  const { wait_time_before_replying_ms: wait, longest_wait_ms: longest = LONGEST_FACTOR * wait } = settings
  return { ...settings, longest_wait_ms: Math.max(longest, wait) }
}

/** Returns the change, or throws with the name of the wrong setting. */
export function checkChange(change: unknown): SettingsChange {
  if (typeof change !== 'object' || change === null) throw new TypeError('The settings must be a JSON object.')
  for (const [name, value] of Object.entries(change)) {
    const rule = Object.hasOwn(RULES, name) ? RULES[name as keyof Settings] : undefined
    if (rule === undefined) {
      throw new TypeError(`There is no setting ${name}. These exist: ${Object.keys(RULES).join(', ')}.`)
    }
    const [says, holds] = rule
    if (!holds(value)) throw new TypeError(`${name} must be ${says}; got ${JSON.stringify(value)}.`)
  }
  return change
}

function isWithin(least: number, most: number): (value: unknown) => boolean {
  return (value) => Number.isInteger(value) && (value as number) >= least && (value as number) <= most
}

function isBoolean(value: unknown): boolean {
  return typeof value === 'boolean'
}

function isText(value: unknown): boolean {
  return typeof value === 'string'
}
