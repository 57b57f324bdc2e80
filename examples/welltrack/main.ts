// `npm run example welltrack`
import { runExample } from '../kit/run.ts'
import { welltrack } from './example.ts'

await runExample(welltrack)
