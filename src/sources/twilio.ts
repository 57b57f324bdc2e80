// Twilio: the address it called and the fields of the form signed, by SHA-1; bodies that are no form are signed by their hash in the address.
import { hash } from 'node:crypto'
import { SluiceError } from '../errors.ts'
import { onlyKnown } from '../model/options.ts'
import type { ReceivedRequest, Refusal, Source } from '../receive/source.ts'
import { formOf, isForm, valuesByName } from './form-body.ts'
import { FORGED, isSame, isSigned, refusal, secretsOf, unsigned } from './signature.ts'
import { twilioEvents } from './twilio-events.ts'
import { calledUrls } from './twilio-url.ts'

export interface TwilioOptions {
  /** The auth token of the account. */
  readonly secret: string | readonly string[]
  /** The address as it is set at Twilio, without query: where a proxy that is not listed hides it. */
  readonly url?: string
  /** What is answered, `<Response></Response>` unless said: for a call, that hangs up. */
  readonly twiml?: string
}

const KNOWN: ReadonlySet<string> = new Set<keyof TwilioOptions>(['secret', 'url', 'twiml'])
const HEADER = 'x-twilio-signature'
const MAC = { algorithm: 'sha1', encoding: 'base64' } as const
const BODY_HASH = 'bodySHA256'

export function twilio(options: TwilioOptions): Source {
  onlyKnown(options, KNOWN, 'twilio: ')
  const url = options.url === undefined ? undefined : publicUrl(options.url)
  return {
    scheme: 'twilio',
    secrets: secretsOf('twilio', options.secret),
    dedupeFor: '30d',
    methods: ['POST', 'GET'],
    verify: (request, { secrets }) => {
      const given = request.headers[HEADER]
      if (given === undefined) return unsigned(HEADER)
      const fields = signedFields(request)
      if (typeof fields !== 'string') return fields
      const urls = calledUrls(request, url)
      // All are computed, whichever fits.
      const fits = urls.filter((one) => isSigned([given], [one, fields], secrets, MAC))
      return fits.length > 0 ? undefined : FORGED
    },
    ...(url !== undefined && { sender: { url } }),
    events: twilioEvents,
    answer: {
      status: 200,
      headers: { 'content-type': 'text/xml' },
      body: options.twiml ?? '<Response></Response>',
    },
  }
}

/** What is signed after the address. Nothing of a body may be left that is neither in here nor hashed in the address. */
function signedFields(request: ReceivedRequest): string | Refusal {
  const bodyHash = request.url.searchParams.get(BODY_HASH)
  if (bodyHash !== null) return isSame(bodyHash, hash('sha256', request.body, 'hex')) ? '' : FORGED
  if (request.body.length === 0) return ''
  if (!isForm(request)) {
    const what = `The body is no form, and there is no ${BODY_HASH} in the address.`
    return refusal('CONTENT_TYPE_WRONG', what, 'See that nothing in between changes the content type or the query.')
  }
  const form = formOf(request)
  if ('code' in form) return form
  const text = Buffer.from(request.body).toString()
  // The names and values are signed without anything between them: 'a=b' and 'ab' would be the same.
  if (!text.split('&').every((field) => field.includes('='))) return FORGED
  return [...valuesByName(form)]
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .flatMap(([name, values]) => [...new Set(values)].toSorted().map((value) => name + value))
    .join('')
}

function publicUrl(url: unknown): string {
  const isGood = typeof url === 'string' && /^https?:\/\/[^?#\s]+$/i.test(url) && URL.canParse(url)
  if (isGood) return url
  throw new SluiceError(
    'CONFIG_INVALID',
    `twilio: url is ${JSON.stringify(url)}; give the address as it is set at Twilio, from https:// on, without ? and #.`,
  )
}
