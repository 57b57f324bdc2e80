// Builds requests of Garmin: a list of items under their type, and the client id of the app in a header.
import { requestBody, JSON_TYPE, toSeconds, type Signer } from './signed.ts'

export const garmin: Signer = (asked) => {
  const item = { userId: 'test', summaryId: asked.id, startTimeInSeconds: Number(toSeconds(asked.now)) }
  const body = requestBody(asked, { [asked.type ?? 'activities']: [item] })
  return { url: asked.url, headers: { ...JSON_TYPE, 'garmin-client-id': asked.secret }, body }
}
