// Meta and Twilio report later, as a status, whether a message that they accepted was delivered. `lateFailureOf` reads why one was not.
import type { FlowEvent } from 'sluice'
import { z } from 'zod'

export interface LateFailure {
  readonly reason: string
  /** `resend`: the provider had trouble of its own. `fallback`: it refuses this text. `none`: no free text reaches the person. */
  readonly remedy: 'resend' | 'fallback' | 'none'
}

/** The statuses that end the life of a sent message. */
export const FINAL_STATUSES = [
  ...['delivered', 'read', 'failed'].map((status) => `whatsapp/status.${status}`),
  ...['delivered', 'read', 'failed', 'undelivered'].map((status) => `twilio/message.${status}`),
]

const metaBody = z.object({
  status: z.object({
    id: z.string(),
    payment: z.unknown().optional(),
    errors: z.array(z.object({ code: z.number(), title: z.string().optional() })).optional(),
  }),
})
const twilioFields = z.object({ ErrorCode: z.string().optional(), ErrorMessage: z.string().optional() })

/**
 * Every other code, also one that is not known yet, is worth another attempt: e.g. 131000 and 131016 at Meta, 63012 at Twilio.
 * Meta: https://developers.facebook.com/docs/whatsapp/cloud-api/support/error-codes
 * Twilio: https://www.twilio.com/docs/api/errors
 */
const REMEDIES: ReadonlyMap<string, LateFailure['remedy']> = new Map([
  // The sender itself, not on WhatsApp, not an allowed test number, more than 24 hours, opted out, held back by Meta, a blocked country.
  ...[131_021, 131_026, 131_030, 131_047, 131_050, 131_049, 130_472, 130_497].map((code) => metaRemedy(code, 'none')),
  // A wrong parameter, or a message of a kind that is not supported.
  ...[100, 131_008, 131_009, 131_051].map((code) => metaRemedy(code, 'fallback')),
  // A wrong number, opted out, not on WhatsApp, not in the sandbox, more than 24 hours, held back by Meta, or blocked.
  ...[21_211, 21_610, 63_003, 63_015, 63_016, 63_024, 63_032, 63_033].map((code) => twilioRemedy(code, 'none')),
  // Too long, not accepted, against the policy, or invalid.
  ...[21_617, 63_005, 63_013, 63_021].map((code) => twilioRemedy(code, 'fallback')),
])

/** The id that the provider gave to the message; undefined for the status of a payment. */
export function reportedId({ source, subject, data }: FlowEvent): string | undefined {
  if (source === 'twilio') return subject
  const { id, payment } = metaBody.parse(data).status
  return payment === undefined ? id : undefined
}

/** Returns undefined if nothing failed. Statuses come in any order, and a message that was delivered has not failed. */
export function lateFailureOf(events: readonly FlowEvent[]): LateFailure | undefined {
  if (events.some(({ type }) => /\.(delivered|read)$/.test(type))) return undefined
  const failure = events.find(({ type }) => /\.(failed|undelivered)$/.test(type))
  if (failure === undefined) return undefined
  const { who, code, title } = failure.source === 'twilio' ? errorOfTwilio(failure.data) : errorOfMeta(failure.data)
  return {
    reason: `${who} reported later that the message failed, with the error ${code} ${title}`.trimEnd(),
    remedy: REMEDIES.get(`${who} ${code}`) ?? 'resend',
  }
}

function errorOfMeta(data: unknown) {
  const [error] = metaBody.parse(data).status.errors ?? []
  return { who: 'Meta', code: error?.code ?? 'unknown', title: error?.title ?? '' }
}

function errorOfTwilio(data: unknown) {
  const { ErrorCode: code = 'unknown', ErrorMessage: title = '' } = twilioFields.parse(data)
  return { who: 'Twilio', code, title }
}

function metaRemedy(code: number, remedy: LateFailure['remedy']) {
  return [`Meta ${code}`, remedy] as const
}

function twilioRemedy(code: number, remedy: LateFailure['remedy']) {
  return [`Twilio ${code}`, remedy] as const
}
