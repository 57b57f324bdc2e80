// What the scenarios do not show: the start, and the plain functions of the domain.
import { Sluice, systemClock } from 'sluice'
import { testApp } from 'sluice/testing'
import { describe, expect, it } from 'vitest'
import { build } from '../assistant.ts'
import { twilioChannel } from '../channels.ts'
import { handedOn } from '../domain/handed-on.ts'
import { naturalDelay } from '../domain/natural-delay.ts'
import { checkChange, withDefaults } from '../domain/settings.ts'
import { preview } from '../phone.ts'
import { settingsTable } from '../settings-table.ts'
import { ENV } from '../world.ts'

const url = (name: string): string => `https://${name}.example`
const at = (second: number, text: string) => ({ text, at: second * 1_000 })
const varied = (percent: number) => withDefaults('1', { delay_variance_percent: percent })

describe('the start', () => {
  it('fails at once if the store is unreachable, and names the fix', async () => {
    // Nothing listens on port 1.
    const store = 'postgres://nobody@127.0.0.1:1/assistant'
    const options = { log: false } as const
    const app = build({ store, env: ENV, clock: systemClock, options, url, watch: (client) => client })
    await expect(app.start()).rejects.toThrow(/^STORE_UNREACHABLE: .*ECONNREFUSED.*Check that the server runs/)
    await app.stop()
  })

  it('fails at once on the default store if its folder is missing, and names the fix', async () => {
    const store = 'sqlite:/no/such/folder/assistant.db'
    const options = { log: false } as const
    const app = build({ store, env: ENV, clock: systemClock, options, url, watch: (client) => client })
    await expect(app.start()).rejects.toThrow(
      /^STORE_UNWRITABLE: .*\/no\/such\/folder\/assistant\.db: .*Create the folder/,
    )
    await app.stop()
  })

  it('names the file and the fix if the table of settings cannot be opened', async () => {
    const table = settingsTable({ store: 'sqlite:/no/such/folder/assistant.db', watch: (client) => client })
    await expect(table.of(['1'])).rejects.toThrow(
      /^The tables of the app in \/no\/such\/folder\/assistant\.db\.assistant cannot be opened: .* Create the folder/,
    )
  })
})

describe('the channel to Twilio', () => {
  it('asks for the statuses at the public address of the webhook, and returns the id that they carry', async () => {
    const app = new Sluice({ store: 'memory:', log: false })
    const limit = app.limit('send', { rate: 1, per: '1s' })
    const forms: string[] = []
    const respond = async (request: Request): Promise<Response> => {
      forms.push(await request.text())
      return Response.json({ sid: 'SM7' }, { status: 201 })
    }
    const t = await testApp(app, { fetch: respond })
    const callback = 'https://hooks.example/in/twilio'
    const access = { url: url('twilio'), typingUrl: url('typing'), authToken: 'token', limit }
    const to = {
      channel: 'twilio',
      id: 'SM1',
      line: '+1',
      account: 'AC1',
      person: '+2',
      phone: '+2',
      text: '',
      at: 0,
    } as const
    const run = { id: 'run', signal: new AbortController().signal }
    const sent = twilioChannel({ ...access, callback }).send(to, 'Hi', run)
    expect(await t.until(sent)).toBe('SM7')
    await t.until(twilioChannel({ ...access, callback: undefined }).send(to, 'Hi', run))
    expect(forms.map((form) => new URLSearchParams(form).get('StatusCallback'))).toEqual([callback, null])
    await t.stop()
  })
})

describe('the text that the model gets', () => {
  it('is a single message as it was written, line breaks and all', () => {
    expect(handedOn([at(7, ' a\n[+5s] b ')])).toEqual({ text: ' a\n[+5s] b ', is_aggregated: false })
  })

  it('labels whole seconds since the first message, rounded down', () => {
    expect(handedOn([at(0.9, 'a'), at(1.8, 'b'), at(3, 'c')]).text).toBe('a\n[+0s] b\n[+2s] c')
  })

  it('never decreases, whatever the clocks say', () => {
    expect(handedOn([at(50, 'a'), at(10, 'b'), at(58, 'c'), at(3, 'd')]).text).toBe('a\n[+0s] b\n[+8s] c\n[+8s] d')
  })
})

describe('the preview of the phone', () => {
  it('labels the whole seconds that the webhook carries', () => {
    const messages = [900, 1_100, 2_950].map((ms, n) => ({
      person: { name: 'a', userId: 'a' },
      id: `${n}`,
      text: `${n}`,
      at: ms,
    }))
    expect(preview(messages)).toBe('0\n[+1s] 1\n[+2s] 2')
  })
})

describe('the settings', () => {
  it('have the defaults of the design', () => {
    expect(withDefaults('+55 11', {})).toMatchObject({
      flow_id: '5511',
      wait_time_before_replying_ms: 60_000,
      longest_wait_ms: 600_000,
      typing_indicator_enabled: true,
      message_reset_enabled: true,
      natural_delays_enabled: true,
      delay_variance_percent: 20,
    })
  })

  it('never have a longest wait below the wait', () => {
    expect(withDefaults('1', { longest_wait_ms: 100 }).longest_wait_ms).toBe(60_000)
  })

  it.each([
    [{ flow_id: 'a:b' }, 'flow_id must be a word'],
    [{ delay_variance_percent: 101 }, 'delay_variance_percent must be a whole number from 0 to 100; got 101.'],
    [{ typing_indicator_enabled: 'yes' }, 'typing_indicator_enabled must be true or false; got "yes".'],
    [{ constructor: 1 }, 'There is no setting constructor.'],
    [null, 'The settings must be a JSON object.'],
  ])('reject %j', (change, message) => {
    expect(() => checkChange(change)).toThrow(message)
  })
})

describe('the natural delay', () => {
  it('is the time to type the reply, within bounds', () => {
    expect([0, 100, 10_000].map((n) => naturalDelay('x'.repeat(n), varied(0), 'run'))).toEqual([1_000, 3_000, 8_000])
  })

  it('varies by so many percent with the run, and is the same for the same run', () => {
    const delays = Array.from({ length: 200 }, (_, n) => naturalDelay('x'.repeat(100), varied(20), `run ${n}`))
    expect(Math.min(...delays)).toBeGreaterThanOrEqual(2_400)
    expect(Math.max(...delays)).toBeLessThanOrEqual(3_600)
    expect(new Set(delays).size).toBeGreaterThan(100)
    expect(naturalDelay('x'.repeat(100), varied(20), 'run 7')).toBe(delays[7])
  })
})
