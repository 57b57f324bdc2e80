// The mappings of the design, from payloads in the shape in which Garmin and Strava send them.
import { describe, expect, it } from 'vitest'
import { mapGarmin } from '../domain/garmin.ts'
import { dedupeHash, MalformedError } from '../domain/metric.ts'
import { maySend, mayBackfill, parsePermissions } from '../domain/permissions.ts'
import { activityId, mapStrava } from '../domain/strava.ts'
import { backfillParts } from '../domain/backfill.ts'
import { activity, dailies, garminActivity, sleep, stress, userMetrics } from '../stand-in/payloads.ts'

const seconds = (iso: string): number => Date.parse(iso) / 1_000

describe('Garmin sleeps', () => {
  it('has its stages, its score and its SpO2 as a metric of its own', () => {
    expect(mapGarmin('sleeps', sleep())).toEqual({
      missing: [],
      metrics: [
        {
          type: 'sleep',
          value: 26_400,
          unit: 'seconds',
          text: { deep: 6_000, light: 14_400, rem: 6_000, awake: 1_200, sleepScore: 84 },
          start: '2026-11-17T22:10:00Z',
          end: '2026-11-18T05:50:00Z',
          date: '2026-11-18',
        },
        {
          type: 'spo2',
          value: 95.3,
          unit: '%',
          text: { min: 94, max: 97 },
          start: '2026-11-17T22:10:00Z',
          end: '2026-11-18T05:50:00Z',
          date: '2026-11-18',
        },
      ],
    })
  })

  it('takes what is there and names what was missing', () => {
    const { remSleepInSeconds: _rem, overallSleepScore: _score, timeOffsetSleepSpo2: _spo2, ...rest } = sleep()
    const { metrics, missing } = mapGarmin('sleeps', rest)
    expect(missing).toEqual(['remSleepInSeconds', 'overallSleepScore'])
    expect(metrics).toMatchObject([{ type: 'sleep', value: 26_400 }])
    expect(metrics[0]?.text).toEqual({ deep: 6_000, light: 14_400, awake: 1_200 })
  })

  it('adds up the stages when the duration is missing, and counts a wrong type as missing', () => {
    const { metrics, missing } = mapGarmin('sleeps', {
      ...sleep(),
      durationInSeconds: undefined,
      lightSleepDurationInSeconds: '14400',
    })
    expect(metrics[0]?.value).toBe(12_000)
    expect(missing).toEqual(['lightSleepDurationInSeconds (not a number)', 'durationInSeconds'])
  })

  it.each(['unmeasurableSleepInSeconds', 'unmeasurableSleepDurationInSeconds'])('ends after %s too', (name) => {
    const { metrics } = mapGarmin('sleeps', { ...sleep(), sleepLevelsMap: undefined, [name]: 600 })
    expect(metrics[0]?.end).toBe('2026-11-18T06:00:00Z')
  })

  it('ends with its last stage if that is later', () => {
    const end = seconds('2026-11-18T06:30:00Z')
    const sleepLevelsMap = { deep: [], light: [{ startTimeInSeconds: end - 600, endTimeInSeconds: end }] }
    expect(mapGarmin('sleeps', { ...sleep(), sleepLevelsMap }).metrics[0]?.end).toBe('2026-11-18T06:30:00Z')
  })

  it('does not take a negative value for a measurement', () => {
    const negative = { awakeDurationInSeconds: -1, overallSleepScore: { value: -1 }, timeOffsetSleepSpo2: { '0': -1 } }
    const { metrics, missing } = mapGarmin('sleeps', { ...sleep(), ...negative })
    expect(metrics.map(({ type }) => type)).toEqual(['sleep'])
    expect(metrics[0]?.text).toEqual({ deep: 6_000, light: 14_400, rem: 6_000 })
    expect(missing).toEqual([])
  })

  it('belongs to the date where the person was', () => {
    const { calendarDate: _, ...rest } = sleep()
    const dates = [-36_000, 0, 7_200].map(
      (offset) => mapGarmin('sleeps', { ...rest, startTimeOffsetInSeconds: offset }).metrics[0]?.date,
    )
    expect(dates).toEqual(['2026-11-17', '2026-11-17', '2026-11-18'])
  })

  it('is as long as it was over a change of the clocks', () => {
    // Berlin, 2026-03-29: 02:00 becomes 03:00. From 23:00 to 07:00 local time are seven hours.
    const startTimeInSeconds = seconds('2026-03-28T22:00:00Z')
    const item = { ...sleep(), startTimeInSeconds, durationInSeconds: 25_200, awakeDurationInSeconds: 0 }
    const { metrics } = mapGarmin('sleeps', { ...item, sleepLevelsMap: {}, calendarDate: '2026-03-29' })
    expect(metrics[0]).toMatchObject({
      start: '2026-03-28T22:00:00Z',
      end: '2026-03-29T05:00:00Z',
      date: '2026-03-29',
      value: 25_200,
    })
  })

  it.each([
    ['no start', { ...sleep(), startTimeInSeconds: undefined }, 'startTimeInSeconds'],
    ['no duration and no stages', { startTimeInSeconds: 1 }, 'durationInSeconds'],
    ['a start beyond all calendars', { ...sleep(), startTimeInSeconds: 1e18 }, 'not a time'],
    ['a list', [], 'not an object'],
    ['null', null, 'not an object'],
    ['a wrong date', { ...sleep(), calendarDate: '18.11.2026' }, 'not a calendarDate'],
  ])('is malformed with %s', (_, item, why) => {
    expect(() => mapGarmin('sleeps', item)).toThrow(MalformedError)
    expect(() => mapGarmin('sleeps', item)).toThrow(why)
  })
})

describe('Garmin stressDetails', () => {
  it('averages the levels from 1 to 100, and has the last body battery', () => {
    expect(mapGarmin('stressDetails', stress())).toEqual({
      missing: [],
      metrics: [
        {
          type: 'stress',
          // -1 and -2 are no measurements.
          value: 34,
          unit: 'score',
          text: { min: 18, max: 51, bodyBattery: 54 },
          start: '2026-11-18T00:00:00',
          end: '2026-11-18T23:59:59',
          date: '2026-11-18',
        },
      ],
    })
  })

  it('has no metric if nothing was measured, and falls back to the average of Garmin only without levels', () => {
    const none = { ...stress(), timeOffsetStressLevelValues: { '0': -1, '180': -2 } }
    expect(mapGarmin('stressDetails', none).metrics).toEqual([])
    const { timeOffsetStressLevelValues: _, ...rest } = stress()
    const { metrics, missing } = mapGarmin('stressDetails', rest)
    expect(missing).toEqual(['timeOffsetStressLevelValues'])
    expect(metrics).toMatchObject([{ value: 33, text: { max: 51, bodyBattery: 54 } }])
    expect(mapGarmin('stressDetails', { ...rest, averageStressLevel: -1 }).metrics).toEqual([])
  })

  it('reads the series in the order of time, not of the text', () => {
    const timeOffsetBodyBatteryValues = { '1000': 40, '180': 60, '0': 70 }
    expect(mapGarmin('stressDetails', { ...stress(), timeOffsetBodyBatteryValues }).metrics[0]?.text).toMatchObject({
      bodyBattery: 40,
    })
  })

  it('is a whole day of the calendar, however many hours that has', () => {
    const days = ['2026-03-29', '2026-10-25'].map((calendarDate) => {
      const [metric] = mapGarmin('stressDetails', { ...stress(), calendarDate }).metrics
      return [metric?.start, metric?.end]
    })
    expect(days).toEqual([
      ['2026-03-29T00:00:00', '2026-03-29T23:59:59'],
      ['2026-10-25T00:00:00', '2026-10-25T23:59:59'],
    ])
  })

  it('is malformed without levels and average', () => {
    expect(() => mapGarmin('stressDetails', { calendarDate: '2026-11-18' })).toThrow(MalformedError)
    expect(() => mapGarmin('stressDetails', { averageStressLevel: 20 })).toThrow(MalformedError)
  })
})

describe('Garmin userMetrics', () => {
  it('has a metric each for running and cycling, with hashes of their own', () => {
    const { metrics, missing } = mapGarmin('userMetrics', { ...userMetrics(), vo2MaxCycling: 44 })
    const time = { start: '2026-11-18', end: '2026-11-18', date: '2026-11-18', unit: 'ml/kg/min' }
    expect(metrics).toEqual([
      { type: 'vo2max', value: 48.2, text: { type: 'running', fitnessAge: 31 }, ...time },
      { type: 'vo2max_cycling', value: 44, text: { type: 'cycling', fitnessAge: 31 }, ...time },
    ])
    expect(missing).toEqual([])
    expect(new Set(metrics.map((metric) => dedupeHash('p1', 'garmin', metric))).size).toBe(2)
  })

  it('takes one without the other, and no negative ones', () => {
    expect(mapGarmin('userMetrics', userMetrics()).metrics).toMatchObject([{ type: 'vo2max' }])
    const { vo2Max: _, ...rest } = userMetrics()
    expect(mapGarmin('userMetrics', { ...rest, vo2MaxCycling: 40 })).toMatchObject({
      metrics: [{ type: 'vo2max_cycling' }],
      missing: [],
    })
    expect(mapGarmin('userMetrics', { ...userMetrics(), vo2Max: -1 }).metrics).toEqual([])
    expect(mapGarmin('userMetrics', rest)).toEqual({ metrics: [], missing: ['vo2Max'] })
  })

  it('is malformed without a date or a value', () => {
    expect(() => mapGarmin('userMetrics', { vo2Max: 50 })).toThrow('calendarDate')
    expect(() => mapGarmin('userMetrics', { calendarDate: '2026-11-18' })).toThrow('vo2Max')
  })
})

describe('Garmin dailies', () => {
  it('is a row each of steps, resting heart rate, calories and distance', () => {
    const { metrics, missing } = mapGarmin('dailies', dailies())
    expect(metrics.map(({ type, value, unit }) => [type, value, unit])).toEqual([
      ['steps', 8_412, 'steps'],
      ['resting_hr', 54, 'bpm'],
      ['calories', 512, 'kcal'],
      ['distance', 6_320.5, 'meters'],
    ])
    expect(new Set(metrics.map(({ start, end }) => `${start} ${end}`))).toEqual(
      new Set(['2026-11-18T00:00:00 2026-11-18T23:59:59']),
    )
    expect(missing).toEqual([])
  })

  it('counts a day without a step, but no heart rate of zero', () => {
    const { metrics } = mapGarmin('dailies', { ...dailies(), steps: 0, restingHeartRateInBeatsPerMinute: 0 })
    expect(metrics.map(({ type }) => type)).toEqual(['steps', 'calories', 'distance'])
  })

  it('takes the date from the start where the person was if there is none', () => {
    const { calendarDate: _, ...rest } = dailies()
    const [metric] = mapGarmin('dailies', rest).metrics
    expect(metric?.date).toBe('2026-11-18')
  })

  it('is malformed without any of them', () => {
    expect(() => mapGarmin('dailies', { calendarDate: '2026-11-18', activityType: 'WALKING' })).toThrow(MalformedError)
  })
})

describe('Garmin activities', () => {
  it('is mapped like an activity of Strava', () => {
    expect(mapGarmin('activities', garminActivity())).toEqual({
      missing: [],
      metrics: [
        {
          type: 'activity',
          value: 1_800,
          unit: 'seconds',
          text: { type: 'RUNNING', distance: 5_010, avgHeartRate: 148, calories: 310, elevationGain: 42 },
          start: '2026-11-18T17:00:00Z',
          end: '2026-11-18T17:30:00Z',
          date: '2026-11-18',
        },
      ],
    })
    expect(() => mapGarmin('activities', { startTimeInSeconds: 1 })).toThrow(MalformedError)
  })

  it('has no mapping for a type that the design does not name', () => {
    expect(() => mapGarmin('epochs', {})).toThrow('no mapping')
    expect(() => mapGarmin('constructor', {})).toThrow('no mapping')
  })
})

describe('Strava activities', () => {
  it('lasts as long as the person moved, and ends when it was over', () => {
    expect(mapStrava(activity('101'))).toEqual({
      missing: [],
      metrics: [
        {
          type: 'activity',
          value: 3_000,
          unit: 'seconds',
          text: { type: 'TrailRun', distance: 10_200.4, avgHeartRate: 151.2, calories: 702, elevationGain: 310 },
          start: '2026-11-18T23:30:00Z',
          end: '2026-11-19T00:30:00Z',
          date: '2026-11-19',
        },
      ],
    })
  })

  it('has no heart rate and no VO2 max that Strava does not have', () => {
    const { average_heartrate: _, ...rest } = activity('101')
    const unequipped = mapStrava({ ...rest, has_heartrate: false })
    expect(unequipped.missing).toEqual([])
    expect(unequipped.metrics.map(({ type }) => type)).toEqual(['activity'])
    expect(unequipped.metrics[0]?.text).not.toHaveProperty('avgHeartRate')
    expect(mapStrava(rest).missing).toEqual(['average_heartrate'])
  })

  it('is malformed without a start or a duration', () => {
    expect(() => mapStrava({ ...activity('1'), start_date: 'yesterday' })).toThrow(MalformedError)
    expect(() => mapStrava({ start_date: '2026-11-18T10:00:00Z' })).toThrow(MalformedError)
  })

  it('keeps all digits of an id', () => {
    expect(activityId('{"object_id": 90071992547409931234, "aspect_type":"create"}')).toBe('90071992547409931234')
    expect(activityId('{}')).toBe('')
  })
})

describe('hash, permissions and backfill', () => {
  it('hashes profile, source, type, start and end, and nothing else', () => {
    const [metric] = mapGarmin('sleeps', sleep()).metrics
    if (metric === undefined) throw new Error('no metric')
    const one = dedupeHash('p1', 'garmin', metric)
    // echo -n p1garminsleep2026-11-17T22:10:00Z2026-11-18T05:50:00Z | sha256sum
    expect(one).toBe('7458a207aa81d4fd2669b0a3d023c4b5ab37cc10246ba0e127c0c4b97e784cf8')
    expect(dedupeHash('p1', 'garmin', { ...metric, value: 1, unit: 'x', text: {} })).toBe(one)
    expect(dedupeHash('p2', 'garmin', metric)).not.toBe(one)
    expect(dedupeHash('p1', 'strava', metric)).not.toBe(one)
    expect(dedupeHash('p1', 'garmin', { ...metric, end: '2026-11-18T05:51:00Z' })).not.toBe(one)
  })

  it('reads permissions in every shape that has been seen', () => {
    const both = ['HEALTH_EXPORT', 'HISTORICAL_DATA_EXPORT']
    expect(parsePermissions(both)).toEqual(both)
    expect(parsePermissions('[HEALTH_EXPORT, HISTORICAL_DATA_EXPORT]')).toEqual(both)
    expect(parsePermissions('[]')).toEqual([])
    expect(parsePermissions(undefined)).toBeUndefined()
    expect([maySend('sleeps', both), maySend('activities', both), maySend('activities', undefined)]).toEqual([
      true,
      false,
      true,
    ])
    expect([mayBackfill('sleeps', both), mayBackfill('sleeps', ['HEALTH_EXPORT'])]).toEqual([true, false])
  })

  it('asks for 90 days at once, and for activities by 30, without a gap', () => {
    const parts = backfillParts(90, 90 * 86_400)
    expect(parts).toHaveLength(4 + 3)
    const spans = parts.filter(({ type }) => type === 'activities').map(({ from, to }) => [from / 86_400, to / 86_400])
    expect(spans).toEqual([
      [60, 90],
      [30, 60],
      [0, 30],
    ])
    expect(backfillParts(45, 45 * 86_400).at(-1)).toEqual({ type: 'activities', from: 0, to: 15 * 86_400 })
    expect(() => backfillParts(91, 0)).toThrow('from 1 to 90')
  })
})
