// `npm run example neoforge-meta`
import { runExample } from '../kit/run.ts'
import { neoforgeMeta } from './example.ts'

await runExample(neoforgeMeta)
