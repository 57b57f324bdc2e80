// docs/frameworks.md: as a route handler of Next.js.
import { app } from './sluice.config.ts'

export const runtime = 'nodejs'

export function POST(request: Request): Promise<Response> {
  return app.fetch(request)
}

// Handshakes of Meta and Strava are GET, those of CloudEvents OPTIONS.
export { POST as GET, POST as OPTIONS }
