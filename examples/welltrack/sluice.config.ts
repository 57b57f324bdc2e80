// For `sluice start --config=examples/welltrack/sluice.config.ts`, with the variables of README.md.
import { production } from '../kit/production.ts'
import { build } from './welltrack.ts'

const urls = {
  garmin: 'https://apis.garmin.com',
  'garmin-oauth': 'https://diauth.garmin.com',
  strava: 'https://www.strava.com',
}

export default build(production({ store: 'sqlite:welltrack.db', urls }))
