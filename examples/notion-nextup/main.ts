// `npm run example notion-nextup`: plays the scenarios on the stand-in, or serves. With NOTION_TOKEN it serves your own Notion.
import { runExample } from '../kit/run.ts'
import { nextUpExample } from './example.ts'

await runExample(nextUpExample)
