/** A note for developers, shown only by `npm run dev`. */
import type { ReactNode } from 'react'

export function DeveloperNote({ children }: { children: ReactNode }) {
  if (!import.meta.env.DEV) return null
  return (
    <p className="note">
      <strong>For developers:</strong> {children}
    </p>
  )
}
