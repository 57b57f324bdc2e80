// Signs for Strava: a change notice of one subscription, with a signature if the source requires it.
import { requestBody, JSON_TYPE, computeMac, toSeconds, type Signer } from './signed.ts'

export const strava: Signer = (asked) => {
  const { sender, secret, now } = asked
  const [object = 'activity', aspect = 'create'] = (asked.type ?? 'activity.create').split('.')
  const isSigned = sender?.subscription?.isSigned === true
  const seconds = toSeconds(now)
  const body = requestBody(asked, {
    object_type: object,
    // A notice has no id; only its object and time distinguish two of them.
    object_id: Number.parseInt(asked.id.replaceAll(/\D/g, '').slice(0, 12), 10),
    aspect_type: aspect,
    event_time: Number(seconds),
    owner_id: 1,
    subscription_id: Number(sender?.subscription?.id ?? secret),
    updates: {},
  })
  const mac = isSigned ? computeMac(secret, [`${seconds}.`, body], { algorithm: 'sha256', encoding: 'hex' }) : ''
  const signature = isSigned ? { 'x-strava-signature': `t=${seconds},v1=${mac}` } : {}
  return { url: asked.url, headers: { ...JSON_TYPE, ...signature }, body }
}
