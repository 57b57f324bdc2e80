// Texts for times, amounts and lists. Everything here is pure: the caller names the present.

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

const counts = new Intl.NumberFormat('en')

/** `count` writes a whole number with separators: 1,204. */
export function count(value: number): string {
  return counts.format(Math.round(value))
}

/** `plural` writes a count with its noun: 1 event, 4 events. */
export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${Math.round(value) === 1 ? one : many}`
}

/** `duration` writes a length of time with two digits of precision: 850 ms, 9.4 s, 42 min, 2.5 h, 3 d. */
export function duration(ms: number): string {
  const size = Math.abs(ms)
  if (size < 1) return '0 s'
  if (size < SECOND) return `${Math.round(size)} ms`
  if (size < 59_500) return `${short(size / SECOND)} s`
  if (size < 59.5 * MINUTE) return `${short(size / MINUTE)} min`
  if (size < 47.5 * HOUR) return `${short(size / HOUR)} h`
  return `${short(size / DAY)} d`
}

/** `countdown` is a duration without milliseconds, for texts that change once a second. */
export function countdown(ms: number): string {
  return ms < SECOND
    ? '0 s'
    : duration(ms < 10 * SECOND ? Math.floor(ms / 100) * 100 : Math.floor(ms / SECOND) * SECOND)
}

function short(value: number): string {
  if (value >= 9.95) return String(Math.round(value))
  const rounded = value.toFixed(1)
  return rounded.endsWith('.0') ? rounded.slice(0, -2) : rounded
}

const pad = (value: number, digits = 2): string => String(value).padStart(digits, '0')

/** `clock` writes the time of the day: 09:56:12. */
export function clock(at: number): string {
  const date = new Date(at)
  return `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`
}

/** `clockMs` writes the time of the day with milliseconds: 09:56:12.031. */
export function clockMs(at: number): string {
  return `${clock(at)}.${pad(new Date(at).getMilliseconds(), 3)}`
}

export function minuteOf(at: number): string {
  return clock(at).slice(0, 5)
}

const days = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'long' })
const years = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'long', year: 'numeric' })
const weekdays = new Intl.DateTimeFormat('en-GB', { weekday: 'long', day: 'numeric', month: 'long' })

/** `when` writes the time of the day for today, and the day as well for any other. */
export function when(at: number, now: number): string {
  return isSameDay(at, now) ? clock(at) : `${days.format(at)}, ${minuteOf(at)}`
}

export function dateOf(at: number): string {
  return years.format(at)
}

export function dayAndTime(at: number): string {
  return `${weekdays.format(at).replace(',', '')}, ${clock(at)}`
}

function isSameDay(one: number, other: number): boolean {
  return new Date(one).toDateString() === new Date(other).toDateString()
}

/** `since` says when something began: since 09:31. */
export function since(at: number, now: number): string {
  return now - at < 12 * HOUR && isSameDay(at, now) ? `since ${minuteOf(at)}` : `since ${days.format(at)}`
}

/** `bytes` writes a size: 312 B, 1.9 KB, 4.2 GB. */
export function bytes(size: number): string {
  let value = size
  for (const unit of ['B', 'KB', 'MB', 'GB']) {
    if (value < 999.5) return `${unit === 'B' ? Math.round(value) : short(value)} ${unit}`
    value /= 1_024
  }
  return `${short(value)} TB`
}

/** `ordinal` writes a rank: 1st, 2nd, 3rd, 4th, 11th, 22nd. */
export function ordinal(rank: number): string {
  const tens = rank % 100
  const end = tens >= 11 && tens <= 13 ? 'th' : (['th', 'st', 'nd', 'rd'][rank % 10] ?? 'th')
  return `${count(rank)}${end}`
}

export function percent(share: number): string {
  return `${share > 0 && share < 0.1 ? (share * 100).toFixed(1) : Math.round(share * 100)} %`
}

/** `shortId` keeps both ends of a long id. */
export function shortId(id: string, keep = 4): string {
  return id.length <= keep * 2 + 3 ? id : `${id.slice(0, keep)}…${id.slice(-keep)}`
}

/** `rateOf` writes the rate of a limit: 3 per 1 s. */
export function rateOf(rate: number, perMs: number): string {
  if (perMs === SECOND) return `${count(rate)} a second`
  if (perMs === MINUTE) return `${count(rate)} a minute`
  if (perMs === HOUR) return `${count(rate)} an hour`
  return `${count(rate)} in ${duration(perMs)}`
}

/** `visible` shows a key or a name that could be empty, or could hold characters without a glyph. */
export function visible(text: string): string {
  if (text === '') return '(empty)'
  // oxlint-disable-next-line no-control-regex -- exactly these are replaced
  return text.replaceAll(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g, '�')
}
