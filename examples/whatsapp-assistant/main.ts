// `npm run example whatsapp-assistant`
import { runExample } from '../kit/run.ts'
import { assistant } from './example.ts'

await runExample(assistant)
