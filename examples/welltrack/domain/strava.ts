// `mapStrava` turns an activity, as Strava's API returns it, into metrics. It has no VO2 max, so none is made up.
import { Fields, instant, MalformedError, present, type Mapped } from './metric.ts'

export function mapStrava(activity: unknown): Mapped {
  const fields = new Fields(activity)
  const began = fields.text('start_date')
  const start = began === undefined ? NaN : Date.parse(began) / 1_000
  if (Number.isNaN(start)) throw new MalformedError('The activity has no start_date.')
  const moving = fields.measured('moving_time', 'elapsed_time')
  if (moving === undefined) throw new MalformedError('The activity has no moving_time and no elapsed_time.')
  const elapsed = fields.measured('elapsed_time') ?? moving
  const local = fields.optional('start_date_local')
  const text = present({
    type: fields.text('sport_type', 'type'),
    distance: fields.measured('distance'),
    // An activity without a heart rate sensor says so.
    avgHeartRate: fields.optional('has_heartrate') === false ? undefined : fields.positive('average_heartrate'),
    calories: fields.measured('calories'),
    elevationGain: fields.measured('total_elevation_gain'),
  })
  const time = {
    start: instant(start),
    end: instant(start + elapsed),
    // Strava writes the local time of the person with a Z.
    date: (typeof local === 'string' ? local : instant(start)).slice(0, 10),
  }
  return { metrics: [{ type: 'activity', value: moving, unit: 'seconds', text, ...time }], missing: fields.missing }
}

/** The whole id: it may have more digits than a number of JavaScript holds. */
export function activityId(text: string): string {
  return /"object_id"\s*:\s*"?(\d+)/.exec(text)?.[1] ?? ''
}
