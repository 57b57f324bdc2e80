// `npm run example opik-alerts`
import { runExample } from '../kit/run.ts'
import { opikAlerts } from './example.ts'

await runExample(opikAlerts)
