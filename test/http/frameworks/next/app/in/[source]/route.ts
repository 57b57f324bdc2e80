// docs/frameworks.md: as a route handler of Next.js.
export async function POST(request: Request): Promise<Response> {
  // Not imported at the top: `next build` loads this file too, and does not need the secrets of the app.
  const { default: app } = await import('../../../sluice.config.ts')
  return app.fetch(request)
}

// Meta and Strava send handshakes as GET, CloudEvents as OPTIONS.
export { POST as GET, POST as OPTIONS }
