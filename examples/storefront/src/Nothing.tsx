/** The content of an empty list: the reason, and links to other pages. */
import type { ReactNode } from 'react'
import { Portrait } from './Portrait.tsx'

export function Nothing({ children }: { children: ReactNode }) {
  return (
    <div className="nothing">
      <Portrait species="paw" />
      {children}
    </div>
  )
}
