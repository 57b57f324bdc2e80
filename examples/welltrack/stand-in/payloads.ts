// Payloads in the shapes in which Garmin pushes and Strava returns them.

const START = Date.UTC(2026, 10, 17, 22, 10) / 1_000
const DAY = 86_400

/** `day` counts from 2026-11-18; earlier days are negative. */
function dateOf(day: number): string {
  return new Date(Date.UTC(2026, 10, 18 + day)).toISOString().slice(0, 10)
}

export function sleep(day = 0): Readonly<Record<string, unknown>> {
  const start = START + day * DAY
  return {
    summaryId: `x37f-sleep-${dateOf(day)}`,
    calendarDate: dateOf(day),
    startTimeInSeconds: start,
    startTimeOffsetInSeconds: 3_600,
    durationInSeconds: 26_400,
    unmeasurableSleepInSeconds: 0,
    deepSleepDurationInSeconds: 6_000,
    lightSleepDurationInSeconds: 14_400,
    remSleepInSeconds: 6_000,
    awakeDurationInSeconds: 1_200,
    sleepLevelsMap: {
      deep: [{ startTimeInSeconds: start, endTimeInSeconds: start + 6_000 }],
      light: [{ startTimeInSeconds: start + 6_000, endTimeInSeconds: start + 20_400 }],
      rem: [{ startTimeInSeconds: start + 20_400, endTimeInSeconds: start + 26_400 }],
      awake: [{ startTimeInSeconds: start + 26_400, endTimeInSeconds: start + 27_600 }],
    },
    validation: 'ENHANCED_FINAL',
    timeOffsetSleepSpo2: { '0': 95, '60': 97, '120': 94 },
    overallSleepScore: { value: 84, qualifierKey: 'GOOD' },
  }
}

export function stress(day = 0): Readonly<Record<string, unknown>> {
  return {
    summaryId: `x37f-stress-${dateOf(day)}`,
    calendarDate: dateOf(day),
    startTimeInSeconds: START + day * DAY,
    startTimeOffsetInSeconds: 3_600,
    durationInSeconds: DAY,
    averageStressLevel: 33,
    maxStressLevel: 51,
    timeOffsetStressLevelValues: { '0': 18, '180': 51, '360': -1, '540': 33, '720': -2 },
    timeOffsetBodyBatteryValues: { '0': 55, '180': 56, '360': 54 },
  }
}

export function userMetrics(day = 0): Readonly<Record<string, unknown>> {
  const calendarDate = dateOf(day)
  return { summaryId: `x37f-user-${calendarDate}`, calendarDate, vo2Max: 48.2, fitnessAge: 31, enhanced: true }
}

export function dailies(day = 0): Readonly<Record<string, unknown>> {
  return {
    summaryId: `x37f-daily-${dateOf(day)}`,
    calendarDate: dateOf(day),
    activityType: 'WALKING',
    startTimeInSeconds: START + 3_000 + day * DAY,
    startTimeOffsetInSeconds: 3_600,
    durationInSeconds: DAY,
    steps: 8_412,
    distanceInMeters: 6_320.5,
    activeKilocalories: 512,
    restingHeartRateInBeatsPerMinute: 54,
    averageStressLevel: -1,
  }
}

export function garminActivity(day = 0): Readonly<Record<string, unknown>> {
  return {
    summaryId: `x37f-activity-${dateOf(day)}`,
    activityId: 9_000_000_001 + day,
    activityType: 'RUNNING',
    startTimeInSeconds: Date.UTC(2026, 10, 18, 17) / 1_000 + day * DAY,
    startTimeOffsetInSeconds: 3_600,
    durationInSeconds: 1_800,
    distanceInMeters: 5_010,
    averageHeartRateInBeatsPerMinute: 148,
    activeKilocalories: 310,
    totalElevationGainInMeters: 42,
  }
}

/** A DetailedActivity of Strava, for a person in Berlin. */
export function activity(id: string): Readonly<Record<string, unknown>> {
  return {
    id: Number(id),
    upload_id_str: `up-${id}`,
    name: 'Night run',
    type: 'Run',
    sport_type: 'TrailRun',
    start_date: '2026-11-18T23:30:00Z',
    start_date_local: '2026-11-19T00:30:00Z',
    timezone: '(GMT+01:00) Europe/Berlin',
    moving_time: 3_000,
    elapsed_time: 3_600,
    distance: 10_200.4,
    has_heartrate: true,
    average_heartrate: 151.2,
    calories: 702,
    total_elevation_gain: 310,
  }
}
