/** What a developer must know, and no customer: shown by `npm run dev` alone. */
import type { ReactNode } from 'react'

export function DeveloperNote({ children }: { children: ReactNode }) {
  if (!import.meta.env.DEV) return null
  return (
    <p className="note">
      <strong>For developers:</strong> {children}
    </p>
  )
}
