// docs/frameworks.md: Next.js does not bundle Sluice.
export default { serverExternalPackages: ['sluice'] }
