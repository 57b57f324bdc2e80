// `mapGarmin` turns an item of a Garmin push into metrics, as the design maps them. Field names are those that Garmin sends.
import { Fields, instant, isRecord, MalformedError, mean, present, type Mapped, type Metric } from './metric.ts'

type Mapping = (fields: Fields) => readonly Metric[]

/** The types with metrics, by the key of the push. */
const MAPPINGS: ReadonlyMap<string, Mapping> = new Map(
  Object.entries({ sleeps, stressDetails, userMetrics, dailies, activities }),
)

export const GARMIN_TYPES: readonly string[] = [...MAPPINGS.keys()]

export function mapGarmin(type: string, item: unknown): Mapped {
  const mapping = MAPPINGS.get(type)
  if (mapping === undefined) throw new MalformedError(`There is no mapping for ${type}.`)
  const fields = new Fields(item)
  const metrics = mapping(fields)
  return { metrics, missing: fields.missing }
}

function sleeps(fields: Fields): readonly Metric[] {
  const start = fields.number('startTimeInSeconds')
  if (start === undefined) throw new MalformedError('The sleep has no startTimeInSeconds.')
  const deep = fields.measured('deepSleepDurationInSeconds')
  const light = fields.measured('lightSleepDurationInSeconds')
  const rem = fields.measured('remSleepInSeconds')
  const awake = fields.measured('awakeDurationInSeconds')
  const sleepScore = scoreOf(fields)
  const stages = [deep, light, rem].filter((one) => one !== undefined)
  const duration =
    fields.measured('durationInSeconds') ??
    (stages.length === 0 ? undefined : stages.reduce((sum, one) => sum + one, 0))
  if (duration === undefined) throw new MalformedError('The sleep has no durationInSeconds and no stages.')
  // The duration has neither the time awake nor the time that could not be measured.
  const others = ['unmeasurableSleepInSeconds', 'unmeasurableSleepDurationInSeconds'].map((name) =>
    Number(fields.optional(name) ?? 0),
  )
  const span = duration + (awake ?? 0) + Math.max(0, ...others.filter(Number.isFinite))
  const end = Math.max(start + span, lastStageEnd(fields.optional('sleepLevelsMap')))
  const time = { start: instant(start), end: instant(end), date: dateOf(fields, start) }
  const text = present({ deep, light, rem, awake, sleepScore })
  const oxygen = seriesOf(fields.optional('timeOffsetSleepSpo2')).filter((value) => value > 0 && value <= 100)
  return [
    { type: 'sleep', value: duration, unit: 'seconds', text, ...time },
    ...(oxygen.length === 0 ? [] : [{ type: 'spo2', value: mean(oxygen), unit: '%', text: range(oxygen), ...time }]),
  ]
}

/** The design calls it `overallScore`; Garmin nests it as `overallSleepScore.value`. */
function scoreOf(fields: Fields): number | undefined {
  const score = fields.optional('overallSleepScore')
  const value = isRecord(score) ? score['value'] : undefined
  if (typeof value !== 'number') fields.missing.push('overallSleepScore')
  return typeof value === 'number' && value >= 0 ? value : undefined
}

function lastStageEnd(stages: unknown): number {
  if (!isRecord(stages)) return 0
  const all = Object.values(stages).flatMap((list): readonly unknown[] => (Array.isArray(list) ? list : []))
  const ends = all.map((stage) => (isRecord(stage) ? Number(stage['endTimeInSeconds']) : 0))
  return Math.max(0, ...ends.filter(Number.isFinite))
}

/** Garmin sends no resting heart rate with it: that is a metric of its own, from the dailies. */
function stressDetails(fields: Fields): readonly Metric[] {
  const time = dayOf(fields)
  const named = fields.optional('timeOffsetStressLevelValues')
  const levels = seriesOf(named).filter((level) => level >= 1 && level <= 100)
  const battery = seriesOf(fields.optional('timeOffsetBodyBatteryValues')).filter((level) => level >= 0)
  if (!isRecord(named)) fields.missing.push('timeOffsetStressLevelValues')
  if (!isRecord(named) && !fields.has('averageStressLevel'))
    throw new MalformedError('The stress details have neither levels nor an average.')
  const average = levels.length > 0 ? mean(levels) : isRecord(named) ? undefined : fields.positive('averageStressLevel')
  if (average === undefined) return []
  const most = fields.optional('maxStressLevel')
  const { min, max } = levels.length > 0 ? range(levels) : { min: undefined, max: most }
  const text = present({ min, max, bodyBattery: battery.at(-1) })
  return [{ type: 'stress', value: average, unit: 'score', text, ...time }]
}

/** Two metric types, because the design's hash would take running and cycling on one day for the same row. */
function userMetrics(fields: Fields): readonly Metric[] {
  const date = calendarDate(fields)
  if (date === undefined) throw new MalformedError('The user metrics have no calendarDate.')
  if (!fields.has('vo2Max', 'vo2MaxCycling', 'fitnessAge'))
    throw new MalformedError('The user metrics have neither vo2Max nor vo2MaxCycling.')
  const fitnessAge = fields.positive('fitnessAge')
  const time = { start: date, end: date, date }
  const of = (type: string, sport: string, value: number | undefined): readonly Metric[] =>
    value === undefined ? [] : [{ type, value, unit: 'ml/kg/min', text: present({ type: sport, fitnessAge }), ...time }]
  const running = fields.has('vo2Max') || !fields.has('vo2MaxCycling') ? fields.positive('vo2Max') : undefined
  const cycling = fields.has('vo2MaxCycling') ? fields.positive('vo2MaxCycling') : undefined
  return [...of('vo2max', 'running', running), ...of('vo2max_cycling', 'cycling', cycling)]
}

function dailies(fields: Fields): readonly Metric[] {
  const time = dayOf(fields)
  const values: readonly (readonly [string, string, number | undefined])[] = [
    ['steps', 'steps', fields.measured('steps')],
    ['resting_hr', 'bpm', fields.positive('restingHeartRateInBeatsPerMinute')],
    ['calories', 'kcal', fields.measured('activeKilocalories')],
    ['distance', 'meters', fields.measured('distanceInMeters')],
  ]
  if (fields.missing.length === values.length)
    throw new MalformedError(`The daily summary has none of ${fields.missing.join(', ')}.`)
  return values.flatMap(([type, unit, value]) =>
    value === undefined ? [] : [{ type, unit, value, text: {}, ...time }],
  )
}

function activities(fields: Fields): readonly Metric[] {
  const start = fields.number('startTimeInSeconds')
  const duration = fields.measured('durationInSeconds')
  if (start === undefined || duration === undefined)
    throw new MalformedError('The activity has no startTimeInSeconds or no durationInSeconds.')
  const text = present({
    type: fields.text('activityType'),
    distance: fields.measured('distanceInMeters'),
    avgHeartRate: fields.positive('averageHeartRateInBeatsPerMinute'),
    calories: fields.measured('activeKilocalories'),
    elevationGain: optionalMeasured(fields, 'totalElevationGainInMeters'),
  })
  const time = { start: instant(start), end: instant(start + duration), date: dateOf(fields, start) }
  return [{ type: 'activity', value: duration, unit: 'seconds', text, ...time }]
}

/** A swim has no elevation: its absence is nothing to report. */
function optionalMeasured(fields: Fields, name: string): number | undefined {
  return fields.has(name) ? fields.measured(name) : undefined
}

/** A day of the person's calendar, which has 23 or 25 hours when the clocks change. It is not tied to an instant. */
function dayOf(fields: Fields): Pick<Metric, 'start' | 'end' | 'date'> {
  const start = fields.optional('startTimeInSeconds')
  const date = calendarDate(fields) ?? (typeof start === 'number' ? dateOf(fields, start) : undefined)
  if (date === undefined) throw new MalformedError('The item has neither calendarDate nor startTimeInSeconds.')
  return { start: `${date}T00:00:00`, end: `${date}T23:59:59`, date }
}

function calendarDate(fields: Fields): string | undefined {
  const date = fields.optional('calendarDate')
  if (typeof date !== 'string') return undefined
  if (/^\d{4}-\d\d-\d\d$/.test(date) && !Number.isNaN(Date.parse(date))) return date
  throw new MalformedError(`${JSON.stringify(date.slice(0, 40))} is not a calendarDate.`)
}

/** The calendar date of the item, or the date of its start where the person was. */
function dateOf(fields: Fields, start: number): string {
  const offset = fields.optional('startTimeOffsetInSeconds')
  return calendarDate(fields) ?? instant(start + (typeof offset === 'number' ? offset : 0)).slice(0, 10)
}

/** Garmin's series are objects from seconds since the start to a value. The values come in the order of time. */
function seriesOf(series: unknown): readonly number[] {
  if (!isRecord(series)) return []
  return Object.entries(series)
    .filter((entry): entry is [string, number] => typeof entry[1] === 'number' && Number.isFinite(entry[1]))
    .toSorted(([one], [other]) => Number(one) - Number(other))
    .map(([, value]) => value)
}

function range(values: readonly number[]): { readonly min: number; readonly max: number } {
  return {
    min: values.reduce((least, one) => Math.min(least, one), Infinity),
    max: values.reduce((most, one) => Math.max(most, one), -Infinity),
  }
}
