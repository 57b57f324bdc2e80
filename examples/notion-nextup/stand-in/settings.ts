// The settings of an app that works on the stand-in: production's defaults, and secrets that are good for nothing else.
import { settingsFrom, type Settings } from '../settings.ts'
import { BOT, DATA_SOURCE, TOKEN } from './notion.ts'
import { ACTION_SECRET, VERIFICATION_TOKEN } from './webhooks.ts'

/** As the environment of a user would say it; what is given goes before. */
export function standInSettings(url: string, env: Readonly<Record<string, string>> = {}): Settings {
  return settingsFrom({
    NOTION_TOKEN: TOKEN,
    NOTION_URL: url,
    NOTION_DATA_SOURCE_ID: DATA_SOURCE,
    NOTION_BOT_ID: BOT.id,
    NOTION_ACTION_SECRET: ACTION_SECRET,
    NOTION_VERIFICATION_TOKEN: VERIFICATION_TOKEN,
    ...env,
  })
}
