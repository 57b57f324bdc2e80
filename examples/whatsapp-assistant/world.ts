// The world around the assistant: the stand-ins for Meta, Twilio and the model, and what people have received.
import type { Example } from '../kit/example.ts'
import type { StandIn } from '../kit/stand-in.ts'
import { META, MetaStandIn } from './stand-in/meta.ts'
import { ModelStandIn } from './stand-in/model.ts'
import { Outbox } from './stand-in/outbox.ts'
import { TWILIO, TwilioStandIn } from './stand-in/twilio.ts'

export interface World {
  readonly outbox: Outbox
  readonly meta: MetaStandIn
  readonly metaLog: StandIn['log']
  readonly twilio: TwilioStandIn
  readonly model: ModelStandIn
  /** A key of the app's API, once one was made. */
  apiKey: Promise<string> | undefined
  /** Counted, so that each scenario has lines and people of its own. */
  made: number
}

/** The access to the stand-ins, as the environment of the app. */
export const ENV = {
  META_APP_SECRET: META.secret,
  META_VERIFY_TOKEN: META.verifyToken,
  META_TOKEN: META.token,
  TWILIO_AUTH_TOKEN: TWILIO.authToken,
  MODEL_KEY: 'model-key',
} as const

const MODEL_TAKES = 200

export const makeWorld: Example<World>['world'] = ({ clock, standIn, serve }) => {
  const outbox = new Outbox()
  const meta = new MetaStandIn(clock, outbox)
  const twilio = new TwilioStandIn(outbox)
  const model = new ModelStandIn(clock, MODEL_TAKES)
  const { log: metaLog } = standIn('meta', meta.respond)
  standIn('twilio', twilio.respond)
  standIn('twilio-typing', twilio.respond)
  serve('model', model.handle)
  return { outbox, meta, metaLog, twilio, model, apiKey: undefined, made: 0 }
}

/** Ends what a scenario did to the stand-ins. */
export function calm({ meta, model }: World): void {
  Object.assign(meta, { takes: 0, fail: () => undefined, hangs: () => 0 })
  Object.assign(model, { takes: MODEL_TAKES, fail: () => undefined, reply: (text: string) => `You wrote: ${text}` })
}
