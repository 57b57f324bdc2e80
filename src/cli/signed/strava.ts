// Strava: a notice that something changed, of one subscription, and signed if the source asks for it.
import { bodyOf, JSON_TYPE, macOf, secondsOf, type Signer } from './signed.ts'

export const strava: Signer = (asked) => {
  const { sender, secret, now } = asked
  const [object = 'activity', aspect = 'create'] = (asked.type ?? 'activity.create').split('.')
  const isSigned = sender?.subscription?.isSigned === true
  const seconds = secondsOf(now)
  const body = bodyOf(asked, {
    object_type: object,
    // Nothing but what it is about and when tells one from another.
    object_id: Number.parseInt(asked.id.replaceAll(/\D/g, '').slice(0, 12), 10),
    aspect_type: aspect,
    event_time: Number(seconds),
    owner_id: 1,
    subscription_id: Number(sender?.subscription?.id ?? secret),
    updates: {},
  })
  const mac = isSigned ? macOf(secret, [`${seconds}.`, body], { algorithm: 'sha256', encoding: 'hex' }) : ''
  const signature = isSigned ? { 'x-strava-signature': `t=${seconds},v1=${mac}` } : {}
  return { url: asked.url, headers: { ...JSON_TYPE, ...signature }, body }
}
