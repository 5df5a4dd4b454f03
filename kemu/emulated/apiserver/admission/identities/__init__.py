"""Admission plugins about who somebody is and what he may give away.

certificates      who asks for a certificate; CertificateApproval, CertificateSigning, CertificateSubjectRestriction
role_escalations  roles and bindings give nothing that their writers do not have
service_accounts  ServiceAccount: the account of a pod must exist, and its containers mount a token
"""
