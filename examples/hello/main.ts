// `npm run example hello`
import { runExample } from '../kit/run.ts'
import { hello } from './example.ts'

await runExample(hello)
