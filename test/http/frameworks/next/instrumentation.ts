// docs/frameworks.md: Next.js starts the app and stops it.
export async function register(): Promise<void> {
  if (process.env.NEXT_RUNTIME === 'nodejs') {
    const { default: app } = await import('./sluice.config.ts')
    await app.start()
    process.once('SIGTERM', () => void app.stop().then(() => process.exit()))
  }
}
